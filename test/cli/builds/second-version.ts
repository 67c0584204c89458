// A build that has forgotten the version with which the live runs began.

import { workflow } from '../../../src/index.ts'

export const order = workflow('shop.order', { version: 2 }, async (ctx) => ctx.step('charge', () => 'paid'))
