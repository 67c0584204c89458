// A second replay of a body whose code and journal disagree, to find the places of its calls in the code. It writes nothing,
// begins nothing and reports nothing: it ends when the calls were seen again, or after a while without.

import type { Frame, Host } from '../../core/definition/definition.ts'
import type { FoundCall } from '../../core/model/entry.ts'
import { silentHost, silentListener } from '../../core/runtime/silent-host.ts'
import { CallSites } from './call-site.ts'
import { driftGraceMs } from './drift.ts'

export function retrace(
  host: Host,
  wanted: readonly FoundCall[],
  open: (host: Host, sites: CallSites) => Frame,
): Promise<readonly FoundCall[]> {
  if (wanted.length === 0) return Promise.resolve(wanted)
  return new Promise((resolve) => {
    const places = new Map<string, string | null>()
    const keyOf = ({ kind, name }: Pick<FoundCall, 'kind' | 'name'>): string => `${kind} ${name}`
    const left = new Set(wanted.map(keyOf))
    const end = (): void => {
      cancel()
      frame.abort(new Error('The places of its calls are known.'))
      resolve(wanted.map((call) => ({ ...call, place: places.get(keyOf(call)) ?? null })))
    }
    const sites = new CallSites((call) => {
      places.set(keyOf(call), call.place)
      if (left.delete(keyOf(call)) && left.size === 0) end()
    })
    const cancel = host.ports.clock.after(driftGraceMs, end)
    const frame = open(silentHost(host), sites)
    try {
      frame.start(silentListener)
    } catch {
      end()
    }
  })
}
