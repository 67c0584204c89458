// A store of some hundred lines, written with nothing but what 'holdfast/store' exports, keeps the contract of every store. So a
// store for another database needs none of our insides.

import { readdir, readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { createVirtualClock } from '../../src/testing/index.ts'
import { runContract } from '../contract/run-contract.ts'
import { ToyStore } from './toy-store/store.ts'

runContract('the toy store', async () => {
  const clock = createVirtualClock()
  return { store: new ToyStore(clock), clock }
})

it('the toy store imports nothing but the entry for stores and its own files', async () => {
  const folder = new URL('toy-store/', import.meta.url)
  const files = await readdir(folder)
  const texts = await Promise.all(files.map((file) => readFile(new URL(file, folder), 'utf8')))
  const imported = texts.flatMap((text) => Array.from(text.matchAll(/ from '([^']+)'/g), ([, name]) => name))
  const foreign = imported.filter((name) => name !== 'holdfast/store' && !files.includes(`${name}`.replace('./', '')))
  expect(foreign).toEqual([])
  expect(imported).toContain('holdfast/store')
})
