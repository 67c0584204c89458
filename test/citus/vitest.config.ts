import base from '../../vitest.config.ts'

const config = base({ mode: 'full', command: 'serve' })

/** On a cluster of Citus: `npm run test:citus`. */
export default { ...config, test: { ...config.test, include: ['test/citus/*.long.ts'] } }
