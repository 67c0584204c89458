// Adds to drawn programs what chance would hardly bring about: waits that are made early, parallel steps of which one fails
// while the others can be undone, steps that ask their context, and rarely more at once than one transition may have.
// It draws from a stream of its own, so that the rest of a seed stays what it is.

import type { Draw } from './draw.ts'
import type { Program } from './program.ts'
import type { ChildNode, EarlyNode, Node, StepNode } from './node.ts'

/** Some of the programs that a client starts get a shape more; what they start in it comes behind all others. */
export function addShapes(draw: Draw, programs: readonly Program[]): readonly Program[] {
  const children: Program[] = []
  const shaped = programs.map((program) => {
    if (program.isChild || !draw.chance(0.3)) return program
    const shape = new Shape(draw, programs.length, children)
    const at = draw.int(0, program.nodes.length)
    return { ...program, nodes: program.nodes.toSpliced(at, 0, shape.draw()) }
  })
  return [...shaped, ...children]
}

/** The shape that is added to one program. Its steps have names that no other step of the program has. */
class Shape {
  private readonly random: Draw
  private readonly first: number
  private readonly children: Program[]
  private names = 0

  constructor(random: Draw, first: number, children: Program[]) {
    this.random = random
    this.first = first
    this.children = children
  }

  draw(): Node {
    const { random } = this
    const roll = random.fraction()
    if (roll < 0.02) return { do: 'many', count: 600 }
    if (roll < 0.35) return this.siblings()
    if (roll < 0.55) return this.step({ asks: true })
    return this.early()
  }

  /** Most of them fail their run while something is under way that can be undone. */
  private siblings(): Node {
    const { random } = this
    const undo = (): StepNode['undo'] => random.pick(['well', 'well', 'badly', 'second try'])
    const failing = this.step({ ms: random.pick([0, 5, 40, 300]), fails: 1, attempts: 1 })
    const others = Array.from({ length: random.int(1, 2) }, () => [this.step({ undo: undo() })])
    const together: Node = {
      do: 'together',
      parts: random.chance(0.5) ? [[failing], ...others] : [...others, [failing]],
    }
    return random.chance(0.25) ? { do: 'try', part: [together], caught: [this.step()] } : together
  }

  private early(): EarlyNode {
    const { random } = this
    const sleep = { do: 'sleep', ms: random.pick([30, 400, 1_500, 4_000]) } as const
    const part: Node[] = [this.step()]
    if (random.chance(0.4)) part.push(random.chance(0.5) ? this.step() : { do: 'sleep', ms: random.pick([30, 400]) })
    const fate = random.pick(['awaited', 'awaited', 'raced', 'left'] as const)
    return { do: 'early', wait: random.chance(0.4) ? sleep : this.child(), part, fate }
  }

  private child(): ChildNode {
    const { random } = this
    const nodes = [new Shape(random, this.first, this.children).step({ fails: random.chance(0.1) ? 1 : 0 })]
    this.children.push({ nodes, again: 0, type: 'plain', isChild: true })
    const onParentEnd = random.pick(['cancel', 'abandon', 'wait'] as const)
    const program = this.first + this.children.length - 1
    return { do: 'child', program, ms: random.pick([1, 300, 1_500]), onParentEnd }
  }

  private step(more: Partial<StepNode> = {}): StepNode {
    const { random } = this
    return {
      do: 'step',
      name: `x${this.names++}`,
      ms: random.pick([0, 5, 40, 300, 300, 1_200]),
      fails: 0,
      attempts: 1,
      retryMs: 50,
      timeoutMs: null,
      undo: random.chance(0.3) ? 'well' : 'none',
      heeds: random.chance(0.6),
      kills: 0,
      asks: false,
      ...more,
    }
  }
}
