// The state machine of a decider as a picture: as its `view` declares it, as its instances were observed, or both in one.

import type { DeciderDefinition } from '../../../core/definition/decider-model.ts'
import { HoldfastError } from '../../../core/errors/error.ts'
import { quotedText } from '../../../core/text/printable.ts'
import { checkOptions, didYouMean, shown } from '../../../core/text/suggest.ts'
import type { Observed } from '../instance-views.ts'
import { dot } from './dot.ts'
import { graphOf } from './edges.ts'
import { mermaid } from './mermaid.ts'

export type DiagramFormat = 'mermaid' | 'dot'

export interface DiagramOptions {
  /** `mermaid` for Markdown and wikis, `dot` for Graphviz, which also draws SVG: `dot -Tsvg`. @default 'mermaid' */
  readonly format?: DiagramFormat
  /** What `holdfast.observe` gave: edges say how often they were seen, and where they differ from the declared ones. */
  readonly observed?: Observed
}

export const diagramFormats: readonly DiagramFormat[] = ['mermaid', 'dot']

/**
 * Draws the state machine of a decider, as text. Throws INVALID_OPTION if its `view` has no `definition` and nothing was observed.
 *
 * @example
 * console.log(diagram(order))
 * console.log(diagram(order, { format: 'dot', observed: await holdfast.observe(order) }))
 */
export function diagram(
  { type, model }: Pick<DeciderDefinition, 'type' | 'model'>,
  options: DiagramOptions = {},
): string {
  checkOptions(options, ['format', 'observed'], 'diagram()')
  const { format = 'mermaid', observed } = options
  if (!diagramFormats.includes(format)) {
    const hint = didYouMean(format, diagramFormats)
    throw invalid(`diagram({ format }) must be one of ${diagramFormats.join(', ')}. Got ${shown(format)}.${hint}`)
  }
  const declared = model.view?.definition ?? null
  if (declared === null && observed === undefined) {
    throw invalid(
      `Decider ${quotedText(type)} declares no state machine. Give it one, view: { definition: { initial, terminal, transitions } }, or ` +
        'draw what its instances did, which needs view: { stateInfo } alone: diagram(decider, { observed: await ' +
        'holdfast.observe(decider) }), or holdfast diagram --observed.',
    )
  }
  const graph = graphOf(declared, observed ?? null)
  return format === 'dot' ? dot(type, graph) : mermaid(graph)
}

function invalid(message: string): HoldfastError {
  return new HoldfastError('INVALID_OPTION', message)
}
