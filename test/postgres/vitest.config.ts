import base from '../../vitest.config.ts'

const config = base({ mode: 'full', command: 'serve' })

/** What takes minutes, and so stands in `npm run check:full` only. */
export default { ...config, test: { ...config.test, include: ['test/{chaos,postgres}/*.long.ts'] } }
