// What the Postgres store sends. Its statements are no part of the package's surface, so it is asked to make its calls on
// connections that note what comes and answer nothing; then the same can be sent with no store around it, too.

import type { Store } from 'holdfast'
import { openPostgresStore, type PostgresStoreOptions } from 'holdfast/postgres'
import { Client, Pool } from 'pg'
import { runId } from './bare-runs.ts'

type PoolLike = NonNullable<PostgresStoreOptions['pool']>
type Query = Parameters<Awaited<ReturnType<PoolLike['connect']>>['query']>[0]

/** A statement as the store sends it: its text, the name under which it is prepared, its values. */
export interface Sent extends Query {
  readonly name: string
  readonly values: NonNullable<Query['values']>
}

export interface Place {
  readonly url: string
  /** It exists. */
  readonly schema: string
}

export interface Recorder {
  /** What the store sends for this call, which never gets an answer. */
  sentBy(call: (store: Store) => Promise<unknown>): Promise<readonly Sent[]>
  /** Opens a connection with the settings of the store's own. */
  connect(): Promise<Client>
}

/** Lets `use` have a recorder, and closes all that it opened. */
export async function withRecorder<Result>(
  { url, schema }: Place,
  use: (recorder: Recorder) => Promise<Result>,
): Promise<Result> {
  let notes: Query[] | null = null
  const clients: Client[] = []
  const real = new Pool({ connectionString: url, pipeline: true })
  const deaf = {
    pipeline: true,
    query(query: Query) {
      notes?.push(query)
      return Promise.reject(new Error('Noted.'))
    },
    release: () => undefined,
  }
  const pool: PoolLike = {
    connect: () => (notes === null ? (real as PoolLike).connect() : Promise.resolve(deaf)),
    end: () => real.end(),
  }
  const store = await openPostgresStore({ pool, schema, listen: false })

  async function note(call: (store: Store) => Promise<unknown>): Promise<readonly Query[]> {
    const noted: Query[] = []
    notes = noted
    await call(store).then(
      () => Promise.reject(new Error('A call was to be noted, but it sent nothing.')),
      () => undefined,
    )
    notes = null
    return noted
  }

  const recorder: Recorder = {
    sentBy: async (call) => (await note(call)).filter(isStatement),
    async connect() {
      const client = new Client({ connectionString: url, pipeline: true })
      clients.push(client)
      await client.connect()
      // On connections that are not its own the store sends its settings along, for one transaction.
      const [settings] = (await note((noting) => noting.get([runId(0)]))).filter(isSettings)
      if (settings === undefined) throw new Error('The store sent no settings.')
      await client.query(settings.text.replaceAll(', true)', ', false)'))
      return client
    },
  }
  try {
    return await use(recorder)
  } finally {
    await store.close()
    await Promise.all(clients.map((client) => client.end()))
    await real.end()
  }
}

function isSettings({ text }: Query): boolean {
  return text.includes('set_config(')
}

function isStatement(query: Query): query is Sent {
  return query.name !== undefined
}
