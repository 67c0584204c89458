// All that is fuzzed.

import { addressTargets } from './address-targets.ts'
import { cliTargets } from './cli-target.ts'
import { clientTargets } from './client-targets.ts'
import { payloadTargets } from './payload-targets.ts'
import type { Target } from './target.ts'

export const targets: readonly Target[] = [...payloadTargets, ...addressTargets, ...clientTargets, ...cliTargets]
