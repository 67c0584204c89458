// `holdfast diagram`: draws the state machine of a decider, as its code declares it or beside what its instances did.

import type { Command } from 'commander'
import { diagram, diagramFormats, type DiagramFormat } from '../../../client/deciders/diagram/diagram.ts'
import type { Observed } from '../../../client/deciders/instance-views.ts'
import { isDecider, type DeciderDefinition } from '../../../core/definition/decider-model.ts'
import type { Definition } from '../../../core/definition/definition.ts'
import { HoldfastError } from '../../../core/errors/error.ts'
import { didYouMean } from '../../../core/text/suggest.ts'
import { examples, type Act, type Call } from '../../command-call.ts'
import { whole } from '../../input/option-values.ts'
import { quoted, usage } from '../../usage.ts'

interface DiagramOptions {
  readonly format: DiagramFormat
  readonly observed?: boolean
  readonly limit: number
}

export function registerDiagram(program: Command, act: Act): void {
  const command = program
    .command('diagram')
    .summary('draw the state machine of a decider')
    .description(
      'Draws the state machine that the view of a decider declares, as text for Mermaid or Graphviz. With --observed it reads the ' +
        'journals of instances, and says how often each transition was taken, which never was, and which was not declared.',
    )
    .argument('<type>', 'the type of the decider')
    .option('--format <format>', diagramFormats.join(' or '), formatOf, 'mermaid')
    .option('--observed', 'with what instances in the store did')
    .option('--limit <n>', 'read at most this many instances, the newest first', whole('--limit', 1), 1_000)
    .addHelpText(
      'after',
      examples(
        'diagram shop.order',
        'diagram shop.order --observed',
        'diagram shop.order --format dot | dot -Tsvg > order.svg',
      ),
    )
  act(command, async (call) => {
    const [type = ''] = command.args
    const { format, observed, limit } = command.opts<DiagramOptions>()
    if (observed === true) return drawObserved(call, type, { format, limit })
    const module = await call.module(true)
    const text = diagram(newest(module?.definitions ?? [], type), { format })
    await print(call, { type, format, diagram: text })
  })
}

async function drawObserved(
  call: Call,
  type: string,
  { format, limit }: Pick<DiagramOptions, 'format' | 'limit'>,
): Promise<void> {
  const { holdfast, module } = await call.open({ store: 'existing', workflows: true, onlyLooks: true })
  const observed = await holdfast.observe(type, { limit })
  const text = diagram(newest(module?.definitions ?? [], type), { format, observed })
  await print(call, { type, format, diagram: text, observed })
}

/** With the diagram, what a program wants to know of it. */
interface Answer {
  readonly type: string
  readonly format: DiagramFormat
  readonly diagram: string
  readonly observed?: Observed
}

async function print({ printer }: Call, answer: Answer): Promise<void> {
  await printer.answer(answer, ...answer.diagram.trimEnd().split('\n'))
}

function newest(definitions: readonly Definition[], type: string): DeciderDefinition {
  const found = definitions.filter((one) => one.type === type).toSorted((one, other) => other.version - one.version)[0]
  if (found !== undefined && isDecider(found)) return found
  if (found !== undefined) throw usage(`${quoted(type)} is no decider: only deciders have a state machine.`)
  const hint = didYouMean(
    type,
    definitions.filter(isDecider).map((one) => one.type),
  )
  throw new HoldfastError('WORKFLOW_UNKNOWN', `The module has no decider ${quoted(type)}.${hint}`, {
    details: { type },
  })
}

function formatOf(text: string): DiagramFormat {
  const format = diagramFormats.find((one) => one === text)
  if (format !== undefined) return format
  throw usage(`--format takes ${diagramFormats.join(' or ')}. Got ${quoted(text)}.`)
}
