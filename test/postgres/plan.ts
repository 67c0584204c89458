// What a plan did, as EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) shows it, in the few numbers that must not grow with the
// tables.

export interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'CTE Name'?: string
  readonly 'Parent Relationship'?: string
  readonly 'Subplan Name'?: string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly 'Rows Removed by Join Filter'?: number
  readonly 'Rows Removed by Index Recheck'?: number
  readonly 'Shared Hit Blocks': number
  readonly 'Shared Read Blocks': number
  readonly Plans?: readonly PlanNode[]
}

export interface Effort {
  /** Pages touched, in memory or not. */
  readonly buffers: number
  /** The most rows that went through any one node. */
  readonly rows: number
  /** The most rows that any one node read and threw away. */
  readonly removed: number
  /** The most rows that were sorted at once. */
  readonly sorted: number
  /** Tables that were read from one end to the other. */
  readonly scanned: readonly string[]
}

export function effortOf(root: PlanNode): Effort {
  const nodes = [...nodesOf(root)]
  const read = new Set(nodes.map((node) => node['CTE Name']))
  // What nobody reads from is executed after the rest, and stands in no sum.
  const late = nodes.filter(({ 'Subplan Name': name = '' }) => name.startsWith('CTE ') && !read.has(name.slice(4)))
  const most = (numbers: readonly number[]): number => Math.round(Math.max(0, ...numbers))
  return {
    buffers: [root, ...late].reduce((sum, node) => sum + buffersOf(node), 0),
    rows: most(nodes.map(rowsOf)),
    removed: most(nodes.map(removedBy)),
    sorted: most(nodes.filter(isSort).map(sortedBy)),
    scanned: nodes.flatMap((node) => (node['Node Type'] === 'Seq Scan' ? [node['Relation Name'] ?? '?'] : [])),
  }
}

function* nodesOf(node: PlanNode): Iterable<PlanNode> {
  yield node
  for (const child of node.Plans ?? []) yield* nodesOf(child)
}

function buffersOf(node: PlanNode): number {
  return node['Shared Hit Blocks'] + node['Shared Read Blocks']
}

function rowsOf(node: PlanNode): number {
  return node['Actual Rows'] * node['Actual Loops']
}

function removedBy(node: PlanNode): number {
  const { 'Rows Removed by Filter': filtered = 0, 'Rows Removed by Join Filter': unjoined = 0 } = node
  const { 'Rows Removed by Index Recheck': rechecked = 0 } = node
  return (filtered + unjoined + rechecked) * node['Actual Loops']
}

/** Its other children are parts of the statement that stand above it, such as a CTE. */
function sortedBy({ Plans = [] }: PlanNode): number {
  const input = Plans.filter((node) => node['Parent Relationship'] === 'Outer')
  return input.reduce((sum, node) => sum + rowsOf(node), 0)
}

function isSort(node: PlanNode): boolean {
  return node['Node Type'].endsWith('Sort')
}
