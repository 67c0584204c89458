import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { projectOf, runtimeOptionsFor } from '../../../src/cli/dev/project.ts'

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'holdfast-project-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

describe('the project of a module', () => {
  it('is the nearest folder above it with a package.json, or else its own', () => {
    const place = folder()
    mkdirSync(join(place, 'app', 'src', 'deep'), { recursive: true })
    const module = join(place, 'app', 'src', 'deep', 'workflows.js')
    expect(projectOf(module)).toBe(join(place, 'app', 'src', 'deep'))
    writeFileSync(join(place, 'app', 'package.json'), '{}')
    expect(projectOf(module)).toBe(join(place, 'app'))
  })
})

describe('a runtime that is to read TypeScript', () => {
  const here = resolve('src/workflows.ts')

  it('gets the tsx of the project', () => {
    expect(runtimeOptionsFor(here, [])).toEqual(['--import', expect.stringMatching(/^file:.*tsx.*loader\.mjs$/)])
    expect(runtimeOptionsFor(resolve('src/workflows.mts'), [])).toHaveLength(2)
  })

  it('gets nothing where there is none, where it has it already, or for JavaScript', () => {
    expect(runtimeOptionsFor(join(folder(), 'workflows.ts'), [])).toEqual([])
    expect(runtimeOptionsFor(here, ['--import', 'tsx'])).toEqual([])
    expect(runtimeOptionsFor(here, ['--max-old-space-size=500 --import tsx'])).toEqual([])
    expect(runtimeOptionsFor(resolve('src/workflows.js'), [])).toEqual([])
  })
})
