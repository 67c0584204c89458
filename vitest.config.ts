import { fileURLToPath } from 'node:url'
import { configDefaults, defineConfig } from 'vitest/config'

const source = (file: string): string => fileURLToPath(new URL(`src/${file}`, import.meta.url))

const everything = ['test/**/*.test.ts']

/** What takes long and must guard every change all the same: `npm run test:deep`. */
const deep = [
  'test/chaos/**/*.test.ts',
  'test/simulation/**/*.test.ts',
  'test/soak/**/*.test.ts',
  'test/contract/{matrix,postgres-worker,read-committed,turso,libsql}.test.ts',
  'test/property/{life,invariants,replay,stores}.property.test.ts',
  'test/postgres/**/*.test.ts',
  'test/cli/{deploy-gate,deploy-gate-postgres,dev,hostile-store,looking,processes}.test.ts',
  'test/holdfast/{continuing,poison,process-signals,rekey,repair,shutdown-and-crash}.test.ts',
  'test/support/**/*.test.ts',
  'test/unit/testing/corpus.test.ts',
  'test/testing/time.test.ts',
  'test/docs/{demo,deploy-gate,supply-chain}.test.ts',
  'test/unit/engine/batch/committer-memory.test.ts',
  'test/unit/stores/postgres/prepared-roles.test.ts',
  'test/unit/stores/postgres/schema/{migrate,ownership,roles}.test.ts',
  'test/unit/stores/{many-hints,sqlite/waiting,turso/checking}.test.ts',
]

/** What needs a process of its own: it measures memory, or puts something in the place of a module. */
const apart = ['test/unit/stores/memory/tables/heap.test.ts', 'test/unit/stores/postgres/{exact-types,rights}.test.ts']

/**
 * `npm test`. To start a process and to load everything anew takes most files longer than their tests do, so each of the two
 * processes takes file after file: 320 s of processor time instead of 440 s.
 */
const projects = [
  {
    extends: true as const,
    test: {
      name: 'together',
      include: everything,
      exclude: [...configDefaults.exclude, ...deep, ...apart],
      isolate: false,
    },
  },
  { extends: true as const, test: { name: 'apart', include: apart } },
]

// A mode other than the usual one means that somebody names the files.
export default defineConfig(({ mode }) => ({
  resolve: {
    alias: [
      { find: /^holdfast$/, replacement: source('index.ts') },
      { find: /^holdfast\/testing\/store$/, replacement: source('testing/contract/index.ts') },
      { find: /^holdfast\/store$/, replacement: source('store-kit.ts') },
      { find: /^holdfast\/(sqlite|turso|postgres)$/, replacement: source('stores/$1/index.ts') },
      { find: /^holdfast\/(\w+)$/, replacement: source('$1/index.ts') },
    ],
  },
  test: {
    ...(mode === 'test' ? { projects } : { include: mode === 'deep' ? deep : everything }),
    // Long enough for a machine with half of the usual speed that does other work, too: a test that hangs is found all the same.
    testTimeout: mode === 'deep' ? 180_000 : 60_000,
    // The first that needs a server or a program has it started or translated.
    hookTimeout: 120_000,
    // Which cases properties try: fresh ones only when somebody explores (test/support/properties.ts).
    env: { PROPERTY_SEED: process.env['PROPERTY_SEED'] ?? (mode === 'full' ? '' : '20') },
    // Long enough for a machine that is busy otherwise: what is asked for comes at once, or never.
    expect: { poll: { timeout: 15_000 } },
    // Many files wait for a disk, a process or a time: two at once take two thirds of the time, also on two cores. Of those that
    // take long, more do.
    maxWorkers: mode === 'deep' ? 3 : 2,
    globalSetup: ['test/support/postgres-global.ts', 'test/support/programs-global.ts'],
    reporters: ['default', './tools/closing-line-reporter.mjs'],
  },
}))
