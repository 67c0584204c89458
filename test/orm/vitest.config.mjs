// The tests of this folder need libraries that the root does not install; `npm run test:orm` installs and runs them.

import { defineConfig } from 'vitest/config'
import base from '../../vitest.config.ts'

const root = base({ mode: 'full', command: 'serve' })

export default defineConfig({
  ...root,
  test: { ...root.test, include: ['test/orm/*.test.mjs'], fileParallelism: false },
})
