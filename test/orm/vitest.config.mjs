// The tests of this folder need libraries that the root does not install; `npm run test:orm` installs and runs them.

import { defineConfig } from 'vitest/config'
import root from '../../vitest.config.ts'

export default defineConfig({
  ...root,
  test: { ...root.test, include: ['test/orm/*.test.mjs'], fileParallelism: false },
})
