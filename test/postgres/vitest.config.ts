import base from '../../vitest.config.ts'

/** What takes minutes, and so stands in `npm run check:full` only. */
export default { ...base, test: { ...base.test, include: ['test/{chaos,postgres}/*.long.ts'] } }
