// The import rule: which room of src/ may know which other. The tables below are the rule; the rest turns them into
// dependency-cruiser's form. Type imports count like any other. Run it with `npm run imports`, which also proves that
// the tool saw every module and catches planted violations.

/** What each room may import besides itself: rooms and files of src/, `node:` modules and npm packages. */
export const rooms = {
  core: { src: [] },
  functions: { src: ['core'] },
  deciders: { src: ['core'] },
  graphs: { src: ['core'] },
  engine: { src: ['core', 'store.ts'] },
  client: { src: ['core', 'store.ts', 'engine'] },
  worker: { src: ['core', 'store.ts', 'engine'] },
  projections: { src: ['core', 'store.ts', 'engine'] },
  outbox: { src: ['core', 'store.ts', 'engine'] },
  encryption: { src: ['core'], builtins: true },
  telemetry: { src: ['core'], packages: ['@opentelemetry/api'] },
  testing: {
    src: [
      'core',
      'deciders',
      'store.ts',
      'stores/memory',
      'engine',
      'client',
      'worker',
      'system.ts',
      'holdfast.ts',
      'open-store.ts',
    ],
    builtins: true,
  },
  http: { src: ['core', 'client'], builtins: true, packages: ['hono', '@hono/node-server', 'cloudevents'] },
}

/**
 * The rooms inside a room, lowest first: which rooms and files of the same room each may import besides itself. The files
 * beside them put them together, and may import all. Other rooms have no row, because their inner rooms import each other:
 * only `no-cycles` holds between their files.
 */
export const innerRooms = {
  core: {
    errors: [],
    text: ['errors'],
    model: ['errors', 'text', 'runtime/ports.ts'],
    completion: ['errors', 'text', 'model', 'runtime/ports.ts'],
    payload: ['errors', 'text', 'model'],
    rows: ['errors', 'text', 'model'],
    rules: ['errors', 'text', 'model', 'rows', 'runtime/ports.ts'],
    definition: ['errors', 'text', 'model', 'completion', 'payload', 'rules', 'runtime/ports.ts'],
    runtime: ['errors', 'text', 'model', 'payload', 'rows', 'definition'],
    deciding: ['errors', 'model', 'payload', 'rules', 'definition', 'runtime'],
    invariants: ['errors', 'text', 'model', 'rules'],
  },
  worker: {
    release: [],
    perform: ['release', 'contention.ts'],
    claim: ['release', 'perform', 'contention.ts'],
  },
  cli: {
    output: ['io.ts'],
    dev: [],
    input: ['output', 'command-call.ts', 'io.ts', 'usage.ts'],
    commands: ['output', 'dev', 'input', 'command-call.ts', 'deploy-gate.ts', 'follow.ts', 'io.ts', 'usage.ts'],
  },
  'stores/sqlite': {
    driver: [],
    schema: ['driver'],
    read: ['driver', 'schema'],
    write: ['driver', 'schema', 'read'],
    transactions: ['driver', 'schema', 'read', 'write'],
  },
}

/** Each store may import core, the port, node: modules and its drivers; never another store. */
export const stores = {
  memory: [],
  sqlite: ['libsql'],
  turso: ['@tursodatabase/database', 'libsql'],
  postgres: ['pg'],
}

/** But Turso is the SQLite store over other drivers. */
const foundations = { turso: ['stores/sqlite'] }

/** Files that stand in no room. Only holdfast.ts, open-store.ts and index.ts, where the rooms are put together, may see all. */
const files = {
  'store.ts': { src: ['core'] },
  'store-kit.ts': { src: ['core', 'store.ts'] },
  'holdfast-options.ts': { src: ['core', 'store.ts', 'engine', 'client', 'functions'] },
  'projection-control.ts': { src: ['client', 'projections'] },
  'system.ts': { src: ['core', 'async-scopes.ts', 'console-logger.ts'], builtins: true },
  'console-logger.ts': { src: ['core'], builtins: true },
  'async-scopes.ts': { src: ['core'], builtins: true },
  'stores/storage-limit.ts': { src: [] },
  'stores/load-driver.ts': { src: ['core', 'stores/native-require.ts'] },
  'stores/native-require.ts': { src: ['stores/package-url.ts'] },
  'stores/package-url.ts': { src: [] },
  'stores/row-checks.ts': { src: ['core'] },
  'stores/subscriber-counts.ts': { src: [] },
  'stores/sql-handle.ts': { src: ['core'] },
}

const optionalPeers = ['@tursodatabase/database', 'libsql', 'pg']

const source = '^src/'
const packages = 'node_modules/'
const escape = (text) => text.replaceAll(/[.+^$]/g, '\\$&')
const inside = (names) => names.map((name) => `^src/${escape(name)}${name.endsWith('.ts') ? '$' : '/'}`)
// A package that is not installed is reported under its bare name.
const named = (names) => names.flatMap((name) => [`node_modules/${name}/`, `node_modules/@types/${name}/`, `^${name}$`])

/** A room may import itself and what its row names: everything else is forbidden. */
function allowOnly(name, from, self, { src, builtins = false, packages: allowed = [] }) {
  const rules = [
    {
      name,
      severity: 'error',
      from,
      to: { dependencyTypesNot: ['core'], pathNot: [self, ...inside(src), ...named(allowed)] },
    },
  ]
  if (!builtins) rules.push({ name: `${name}-no-node`, severity: 'error', from, to: { dependencyTypes: ['core'] } })
  return rules
}

/** An inner room may import itself and what its row names, of the room that it stands in. */
function innerRules(room, inner) {
  const at = `^src/${room}/`
  const rules = Object.entries(inner).map(([name, allowed]) => ({
    name: `inner-${room}-${name}`,
    severity: 'error',
    from: { path: `${at}${name}/` },
    to: { path: at, pathNot: inside([name, ...allowed].map((one) => `${room}/${one}`)) },
  }))
  const unknown = {
    name: `inner-${room}-unknown`,
    comment: 'A new folder here needs a row in the table of inner rooms.',
    severity: 'error',
    from: { path: `${at}[^/]+/`, pathNot: `${at}(?:${Object.keys(inner).join('|')})/` },
    to: {},
  }
  return [...rules, unknown]
}

const forbidden = [
  ...Object.entries(innerRooms).flatMap(([room, inner]) => innerRules(room, inner)),
  {
    name: 'ports-alone',
    comment: 'The lower rooms of core import the ports, which must not bring the higher ones along.',
    severity: 'error',
    from: { path: '^src/core/runtime/ports\\.ts$' },
    to: { path: source },
  },
  ...Object.entries(rooms).flatMap(([room, row]) =>
    allowOnly(`room-${room}`, { path: `^src/${room}/` }, `^src/${room}/`, row),
  ),
  ...Object.entries(stores).flatMap(([store, drivers]) =>
    allowOnly(`store-${store}`, { path: `^src/stores/${store}/` }, `^src/stores/${store}/`, {
      src: [
        'core',
        'store.ts',
        'stores/storage-limit.ts',
        'stores/load-driver.ts',
        'stores/native-require.ts',
        'stores/row-checks.ts',
        'stores/subscriber-counts.ts',
        'stores/sql-handle.ts',
        ...(foundations[store] ?? []),
      ],
      builtins: store !== 'memory',
      packages: drivers,
    }),
  ),
  ...Object.entries(files).flatMap(([file, row]) =>
    allowOnly(`file-${file}`, { path: `^src/${escape(file)}$` }, `^src/${escape(file)}$`, row),
  ),
  {
    name: 'no-unknown-room',
    comment: 'A new folder or file of src/ needs a row in the tables of .dependency-cruiser.mjs.',
    severity: 'error',
    from: {
      path: source,
      pathNot: [
        `^src/(?:${[...Object.keys(rooms), 'cli'].join('|')})/`,
        `^src/stores/(?:${Object.keys(stores).join('|')})/`,
        `^src/(?:${[...Object.keys(files), 'holdfast.ts', 'open-store.ts', 'index.ts'].map(escape).join('|')})$`,
      ],
    },
    to: {},
  },
  {
    name: 'system-only-where-wired',
    comment: 'The real clock and randomness enter in one place, so that a test can own them.',
    severity: 'error',
    from: { path: source, pathNot: '^src/(?:holdfast\\.ts$|system\\.ts$|testing/)' },
    to: { path: '^src/(?:system|async-scopes|console-logger)\\.ts$' },
  },
  {
    name: 'not-from-outside-in',
    comment:
      'Nothing but the package entry, the command line and the test kit imports holdfast.ts, and nothing imports the entry.',
    severity: 'error',
    from: { path: source, pathNot: '^src/(?:index\\.ts$|cli/|testing/)' },
    to: { path: '^src/(?:holdfast|index)\\.ts$' },
  },
  {
    name: 'kit-without-contract',
    comment: 'The contract is heavy. Tests of workflows, which load the kit, need none of it.',
    severity: 'error',
    from: { path: '^src/testing/', pathNot: '^src/testing/contract/' },
    to: { path: '^src/testing/contract/' },
  },
  {
    name: 'process-only-in-cli',
    comment: 'The global is refused by the linter; this is its module.',
    severity: 'error',
    from: { path: source, pathNot: '^src/(?:cli/|system\\.ts$)' },
    to: { path: '^(?:node:)?process$' },
  },
  { name: 'no-cycles', severity: 'error', from: { path: source }, to: { circular: true } },
  {
    name: 'no-orphans',
    severity: 'error',
    from: { orphan: true, path: source, pathNot: '^src/(?:index\\.ts|(?:testing|http)/index\\.ts)$' },
    to: {},
  },
  {
    name: 'src-only',
    comment: 'What is published stands in src/.',
    severity: 'error',
    from: { path: source },
    to: { pathNot: [source, packages], dependencyTypes: ['local', 'localmodule', 'aliased'] },
  },
  {
    name: 'declared-packages-only',
    comment: 'A peer that only some install is installed here for the tests, too.',
    severity: 'error',
    from: { path: source },
    to: {
      pathNot: named(optionalPeers),
      dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown', 'npm-bundled', 'undetermined'],
    },
  },
  { name: 'resolvable', severity: 'error', from: { path: source }, to: { couldNotResolve: true } },
]

export default {
  forbidden,
  options: {
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'types', 'node', 'default'] },
    builtInModules: { add: ['node:sqlite', 'node:test'] },
  },
}
