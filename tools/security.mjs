// Checks the list of attacks in SECURITY.md: it is numbered without a gap, and every test that it names, by file and title, is
// there and is not skipped.

import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { titlesIn } from './test-titles.mjs'

const root = resolve(import.meta.dirname, '..')
const fewest = 27
const proofPattern = /`((?:test|src)\/[^`]+\.ts)`: ((?:“`[^`]+`”(?:, )?)+)/g

const [, list = ''] = (await readFile(join(root, 'SECURITY.md'), 'utf8')).split('## What was tried, and what holds')
// Prettier breaks long lines, and what follows a number is indented.
const attacks = list
  .split('\n## ')[0]
  .split(/^(?=[0-9]+\. )/m)
  .slice(1)
  .map((text) => text.replaceAll(/\s+/g, ' '))
const problems = []
const titles = new Map()

async function titlesOf(file) {
  if (!titles.has(file)) {
    const text = await readFile(join(root, file), 'utf8').catch(() => null)
    titles.set(file, text === null ? null : new Set(titlesIn(file, text)))
  }
  return titles.get(file)
}

if (attacks.length < fewest) problems.push(`There are ${attacks.length} attacks, and ${fewest} were tried.`)
for (const [index, attack] of attacks.entries()) {
  const number = index + 1
  if (!attack.startsWith(`${number}. `)) problems.push(`Attack ${number} has another number: ${attack.slice(0, 40)}`)
  const proofs = [...attack.matchAll(proofPattern)]
  if (proofs.length === 0) problems.push(`Attack ${number} names no test.`)
  for (const [, file, quoted] of proofs) {
    const known = await titlesOf(file)
    if (known === null) problems.push(`Attack ${number}: there is no file ${file}.`)
    else {
      for (const [, title] of quoted.matchAll(/“`([^`]+)`”/g)) {
        if (!known.has(title)) problems.push(`Attack ${number}: ${file} has no test "${title}".`)
      }
    }
  }
}
if (problems.length > 0) {
  console.error(problems.join('\n'))
  process.exit(1)
}
