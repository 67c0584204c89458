import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const source = (file: string): string => fileURLToPath(new URL(`src/${file}`, import.meta.url))

export default defineConfig({
  resolve: {
    alias: [
      { find: /^holdfast$/, replacement: source('index.ts') },
      { find: /^holdfast\/(sqlite|turso|postgres)$/, replacement: source('stores/$1/index.ts') },
      { find: /^holdfast\/(\w+)$/, replacement: source('$1/index.ts') },
    ],
  },
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 20_000,
    // Long enough for a machine that is busy otherwise: what is asked for comes at once, or never.
    expect: { poll: { timeout: 15_000 } },
    // Many files wait for a disk, a process or a time: two at once take two thirds of the time, also on two cores.
    maxWorkers: 2,
    globalSetup: ['test/support/postgres-global.ts'],
    reporters: ['default', './tools/closing-line-reporter.mjs'],
  },
})
