// Adds to some programs a crowd: runs that they start and do not await, and that wait for their end, or end with them. So an end
// has more to list than goes into one small page. It draws from a stream of its own, so that the rest of a seed stays what it is.

import type { Draw } from './draw.ts'
import type { Program } from './program.ts'

/** Of the programs that a client starts; the crowds come behind all others. */
export function addCrowds(draw: Draw, programs: readonly Program[]): readonly Program[] {
  const members: Program[] = []
  const crowded = programs.map((program) => {
    if (program.isChild || !draw.chance(0.12)) return program
    const crowd = Array.from({ length: draw.int(2, 4) }, () => {
      members.push({ nodes: [{ do: 'watch' }], again: 0, type: 'plain', isChild: true })
      const onParentEnd = draw.pick(['abandon', 'abandon', 'cancel'] as const)
      return { program: programs.length + members.length - 1, onParentEnd }
    })
    const at = draw.int(0, program.nodes.length)
    return { ...program, nodes: program.nodes.toSpliced(at, 0, { do: 'crowd', members: crowd }) }
  })
  return [...crowded, ...members]
}
