// The tables of a schema.

/** The tables of all versions: in a schema that is not ours, nothing may have these names. */
export const tableNames: readonly string[] = [
  'broadcasts',
  'chores',
  'feed',
  'journal',
  'keys',
  'messages',
  'migrations',
  'projections',
  'runs',
  'secrets',
  'sequencer',
  'sessions',
  'settings',
  'tags',
  'topics',
  'waits',
  'workflows',
]
