// Adds to drawn programs what they send: to themselves, to the run that they know of, to topics. It draws from a stream of its
// own, so that the rest of a seed stays what it is.

import type { Draw } from './draw.ts'
import type { SendNode } from './node.ts'
import type { Program } from './program.ts'

export function addSends(draw: Draw, programs: readonly Program[]): readonly Program[] {
  return programs.map((program) => {
    const knowsLeader = program.nodes[0]?.do === 'watch'
    if (!draw.chance(knowsLeader ? 0.5 : 0.25)) return program
    let { nodes } = program
    for (let left = draw.int(1, 3); left > 0; left -= 1) {
      const to: SendNode['to'] = knowsLeader ? 'leader' : draw.pick(['self', 'self', 'news', 'jobs'])
      nodes = nodes.toSpliced(knowsLeader ? 0 : draw.int(0, nodes.length), 0, { do: 'send', to })
    }
    return { ...program, nodes }
  })
}
