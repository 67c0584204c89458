// Runs the import rule of .dependency-cruiser.mjs over src/, and proves that the run means something:
// dependency-cruiser without a TypeScript it knows reads no module at all and reports success. So first a folder of
// planted imports is cruised, in which exactly the wrong ones must be found, and then the modules that were
// seen in src/ are compared with the files that are there.

import { cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { cruise } from 'dependency-cruiser'
import extractTSConfig from 'dependency-cruiser/config-utl/extract-ts-config'
import config from '../.dependency-cruiser.mjs'

const root = resolve(import.meta.dirname, '..')

async function violationsIn(folder) {
  const { output } = await cruise(
    ['src'],
    {
      ...config.options,
      baseDir: folder,
      validate: true,
      ruleSet: { forbidden: config.forbidden },
      outputType: 'json',
    },
    {},
    { tsConfig: extractTSConfig(join(root, 'tsconfig.json')) },
  )
  const { modules, summary } = typeof output === 'string' ? JSON.parse(output) : output
  return { modules, violations: summary.violations.map(({ from, to, rule }) => ({ from, to, rule: rule.name })) }
}

// Each row: the file, what it imports, and the rules that must object (none: the import is allowed).
/** @type {[file: string, code: string, rules: string[]][]} */
const planted = [
  ['core/a.ts', "import type { Store } from '../store.ts'", ['room-core']],
  ['core/b.ts', "import { readFileSync } from 'node:fs'", ['room-core-no-node']],
  ['core/c.ts', "export const later = () => import('../engine/a.ts')", ['room-core']],
  ['core/d.ts', "import { E } from './e.ts'", ['no-cycles']],
  ['core/e.ts', "import type { D } from './d.ts'", []], // the same cycle, reported once
  ['core/f.ts', 'export const alone = 1', ['no-orphans']],
  ['core/g.ts', "import { it } from 'vitest'", ['room-core', 'declared-packages-only']],
  ['core/h.ts', "import { gone } from './gone.ts'", ['room-core', 'resolvable']],
  ['core/i.ts', "export * from '../system.ts'", ['room-core', 'system-only-where-wired']],
  ['core/j.ts', "export type S = import('../store.ts').Store", ['room-core']],
  ['core/errors/a.ts', "import type { A } from '../text/a.ts'", ['inner-core-errors']],
  ['core/text/a.ts', "import type { B } from './b.ts'", []],
  ['core/text/b.ts', "import type { A } from '../model/a.ts'", ['inner-core-text']],
  ['core/model/a.ts', "import type { P } from '../runtime/ports.ts'", []],
  ['core/model/b.ts', "import type { A } from '../rules/a.ts'", ['inner-core-model']],
  ['core/model/c.ts', "import { A } from '../payload/a.ts'", ['inner-core-model']],
  ['core/completion/a.ts', "import { A } from '../model/a.ts'", []],
  ['core/completion/b.ts', "import { A } from '../payload/a.ts'", ['inner-core-completion']],
  ['core/payload/a.ts', "import { A } from '../rows/a.ts'", ['inner-core-payload']],
  ['core/rows/a.ts', "import { A } from '../model/a.ts'", []],
  ['core/rows/b.ts', "import { A } from '../rules/a.ts'", ['inner-core-rows']],
  ['core/rules/a.ts', "import { A } from '../rows/a.ts'", []],
  ['core/rules/b.ts', "import { A } from '../runtime/a.ts'", ['inner-core-rules']],
  ['core/definition/a.ts', "import { A } from '../rules/a.ts'", []],
  ['core/definition/b.ts', "export const later = () => import('../runtime/a.ts')", ['inner-core-definition']],
  ['core/runtime/ports.ts', "import type { A } from '../errors/b.ts'", ['ports-alone']],
  ['core/errors/b.ts', "export const used = 'by ports.ts'", []],
  ['core/runtime/a.ts', "import { A } from '../definition/a.ts'", []],
  ['core/runtime/b.ts', "import { A } from '../invariants/a.ts'", ['inner-core-runtime']],
  ['core/deciding/a.ts', "import { A } from '../runtime/a.ts'", []],
  ['core/deciding/b.ts', "import { A } from '../rows/a.ts'", ['inner-core-deciding']],
  ['core/invariants/a.ts', "import { A } from '../rules/a.ts'", []],
  ['core/invariants/b.ts', "import { A } from '../payload/a.ts'", ['inner-core-invariants']],
  ['core/extras/a.ts', "import { A } from '../model/a.ts'", ['inner-core-unknown']],
  ['functions/a.ts', "import type { A } from '../core/a.ts'", []],
  ['functions/b.ts', "import type { A } from '../deciders/a.ts'", ['room-functions']],
  ['deciders/a.ts', "import type { A } from '../core/a.ts'", []],
  ['deciders/b.ts', "import type { A } from '../graphs/a.ts'", ['room-deciders']],
  ['graphs/a.ts', "import type { A } from '../core/a.ts'", []],
  ['graphs/b.ts', "import { A } from '../functions/a.ts'", ['room-graphs']],
  ['store.ts', "import type { D } from './core/d.ts'", []],
  ['stores/memory/a.ts', "import type { Store } from '../../store.ts'", []],
  ['stores/memory/b.ts', "import { randomUUID } from 'node:crypto'", ['store-memory-no-node']],
  ['stores/postgres/a.ts', "import { A } from '../memory/a.ts'", ['store-postgres']],
  ['stores/postgres/b.ts', "import { A } from '../../engine/a.ts'", ['store-postgres']],
  ['stores/sqlite/a.ts', "import { mkdirSync } from 'node:fs'", []],
  ['stores/sqlite/b.ts', "import { A } from '../turso/a.ts'", ['store-sqlite']],
  ['stores/sqlite/driver/a.ts', "import { A } from '../schema/a.ts'", ['inner-stores/sqlite-driver']],
  ['stores/sqlite/schema/a.ts', "import { A } from '../read/a.ts'", ['inner-stores/sqlite-schema']],
  ['stores/sqlite/read/a.ts', "import { A } from '../write/a.ts'", ['inner-stores/sqlite-read']],
  ['stores/sqlite/write/a.ts', "import { B } from '../driver/b.ts'", []],
  ['stores/sqlite/driver/b.ts', "export const used = 'by write'", []],
  ['stores/sqlite/write/b.ts', "import { A } from '../transactions/a.ts'", ['inner-stores/sqlite-write']],
  ['stores/sqlite/transactions/a.ts', "import { A } from '../write/a.ts'", []],
  ['stores/sqlite/transactions/b.ts', "import { A } from '../a.ts'", ['inner-stores/sqlite-transactions']],
  ['stores/sqlite/extras/a.ts', "import { A } from '../a.ts'", ['inner-stores/sqlite-unknown']],
  ['stores/turso/a.ts', "import { A } from '../sqlite/a.ts'", []],
  ['stores/turso/b.ts', "import { A } from '../memory/a.ts'", ['store-turso']],
  ['stores/oracle/a.ts', "import { Store } from '../../store.ts'", ['no-unknown-room']],
  ['engine/a.ts', "import type { A } from '../store.ts'\nimport { D } from '../core/d.ts'", []],
  ['engine/b.ts', "import type { A } from '../client/a.ts'", ['room-engine']],
  ['client/a.ts', "import { A } from '../engine/a.ts'", []],
  ['client/b.ts', "import { A } from '../worker/a.ts'", ['room-client']],
  ['client/c.ts', "import { clock } from '../system.ts'", ['room-client', 'system-only-where-wired']],
  ['client/d.ts', "import { hold } from '../holdfast.ts'", ['room-client', 'not-from-outside-in']],
  ['worker/a.ts', "import { A } from '../engine/a.ts'", []],
  ['worker/b.ts', "import type { A } from '../functions/a.ts'", ['room-worker']],
  ['worker/c.ts', "import type { A } from '../client/a.ts'", ['room-worker']],
  ['worker/d.ts', "import { setTimeout } from 'node:timers/promises'", ['room-worker-no-node']],
  ['worker/worker.ts', "import { A } from './claim/a.ts'", []],
  ['worker/claim/a.ts', "import { A } from '../perform/a.ts'", []],
  ['worker/claim/b.ts', "import { A } from '../worker.ts'", ['inner-worker-claim']],
  ['worker/perform/a.ts', "import { A } from '../release/a.ts'", []],
  ['worker/perform/b.ts', "import { A } from '../claim/a.ts'", ['inner-worker-perform']],
  ['worker/release/a.ts', "import { A } from '../../engine/a.ts'", []],
  ['worker/release/b.ts', "import { A } from '../perform/a.ts'", ['inner-worker-release']],
  ['worker/extras/a.ts', "import { A } from '../release/a.ts'", ['inner-worker-unknown']],
  ['encryption/a.ts', "import { A } from '../core/a.ts'\nimport { randomBytes } from 'node:crypto'", []],
  ['encryption/b.ts', "import { A } from '../engine/a.ts'", ['room-encryption']],
  ['testing/a.ts', "import { A } from '../stores/memory/a.ts'\nimport { S } from '../system.ts'", []],
  ['testing/contract/a.ts', "import { A } from '../a.ts'", []],
  ['testing/c.ts', "import { A } from './contract/a.ts'", ['kit-without-contract']],
  ['testing/b.ts', "import { A } from '../stores/postgres/a.ts'", ['room-testing']],
  ['http/a.ts', "import { A } from '../client/a.ts'", []],
  ['http/b.ts', "import { A } from '../store.ts'", ['room-http']],
  ['http/c.ts', "import { env } from 'node:process'", ['process-only-in-cli']],
  ['cli/a.ts', "import { A } from '../worker/a.ts'\nimport { B } from '../http/a.ts'", []],
  ['cli/commands/a.ts', "import { A } from '../input/a.ts'", []],
  ['cli/input/a.ts', "import { A } from '../output/a.ts'", []],
  ['cli/input/b.ts', "import { A } from '../commands/a.ts'", ['inner-cli-input']],
  ['cli/output/a.ts', "import { A } from '../io.ts'", []],
  ['cli/io.ts', 'export const used = 1', []],
  ['cli/output/b.ts', "import { A } from '../input/a.ts'", ['inner-cli-output']],
  ['cli/commands/b.ts', "import { A } from '../program.ts'", ['inner-cli-commands']],
  ['cli/program.ts', "import { A } from './commands/a.ts'", []],
  ['cli/dev/a.ts', "import { A } from '../output/a.ts'", ['inner-cli-dev']],
  ['cli/extras/a.ts', "import { A } from '../io.ts'", ['inner-cli-unknown']],
  ['system.ts', "import type { D } from './core/d.ts'\nimport { hrtime } from 'node:process'", []],
  ['holdfast.ts', "import { W } from './worker/a.ts'\nimport { S } from './system.ts'", []],
  ['index.ts', "export * from './holdfast.ts'", []],
  ['stray.ts', "import { A } from './core/a.ts'", ['no-unknown-room']],
  ['cli/b.ts', "import { bench } from '../../bench/a.ts'", ['src-only']],
  ['cli/c.ts', "import { kit } from '../../test/a.ts'", ['src-only']],
]

async function proveTheRules() {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-imports-'))
  try {
    await cp(join(root, 'package.json'), join(folder, 'package.json'))
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
    const outside = [
      ['../bench/a.ts', 'export const bench = 1'],
      ['../test/a.ts', 'export const kit = 1'],
    ]
    for (const [file, code] of [...planted, ...outside]) {
      const path = join(folder, 'src', file)
      await mkdir(dirname(path), { recursive: true })
      await writeFile(path, code)
    }
    const { violations } = await violationsIn(folder)
    return planted.flatMap(([file, , rules]) => {
      const found = new Set(violations.filter(({ from }) => from === `src/${file}`).map(({ rule }) => rule))
      const wanted = new Set(rules)
      return [
        ...[...wanted].filter((rule) => !found.has(rule)).map((rule) => `${file}: ${rule} did not object`),
        ...[...found]
          .filter((rule) => !wanted.has(rule))
          .map((rule) => `${file}: ${rule} objects to an allowed import`),
      ]
    })
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** A rule between inner rooms that no planted import breaks is not proven to object to anything. */
function unproven() {
  const broken = new Set(planted.flatMap(([, , rules]) => rules))
  const names = config.forbidden.map(({ name }) => name)
  return names
    .filter((name) => name.startsWith('inner-') && !broken.has(name))
    .map((name) => `${name}: no planted import breaks it`)
}

const flaws = [...unproven(), ...(await proveTheRules())]
if (flaws.length > 0) {
  console.error(`The import rule does not do what it says:\n  ${flaws.join('\n  ')}`)
  process.exit(1)
}

const files = (await readdir(join(root, 'src'), { recursive: true })).filter((file) => file.endsWith('.ts'))
const { modules, violations } = await violationsIn(root)
const seen = new Set(modules.map(({ source }) => source))
const unseen = files.filter((file) => !seen.has(`src/${file}`))
if (files.length === 0 || unseen.length > 0) {
  console.error(`dependency-cruiser saw ${seen.size} modules and missed these files of src/:\n  ${unseen.join('\n  ')}`)
  process.exit(1)
}
for (const { from, to, rule } of violations) console.error(`${rule}: ${from} → ${to}`)
console.log(
  `imports: ${files.length} files seen, ${planted.length} planted imports judged rightly, ${violations.length} violations`,
)
if (violations.length > 0) process.exit(1)
