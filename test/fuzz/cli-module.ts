// The module that fuzzed command lines use: a store in memory, which outlives each of them.

import { createMemoryStore, workflow } from '../../src/index.ts'

export const greet = workflow('fuzz.greet', (ctx, name: string) => ctx.step('greet', () => `Hello, ${name}`))

export const holdfast = { store: createMemoryStore() }
