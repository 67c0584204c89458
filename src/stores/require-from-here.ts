// Node's own `require`, resolving from this file: what is called through it is invisible to bundlers. It stands apart and is loaded
// when it is needed, because `import.meta` is refused where this package was turned into CommonJS, as Jest does.

import { createRequire } from 'node:module'

export const requireFromHere: NodeJS.Require = createRequire(import.meta.url)
