// The Postgres of a field: a cluster of its own that writes to disk what it acknowledges, and in front of it the proxy
// through which the workers reach it. Everyone else comes by the direct way.

import { Client } from 'pg'
import { startPostgres, type Cluster } from '../support/postgres.ts'
import { startWireProxy, type WireProxy } from '../support/wire-proxy.ts'

const schema = 'chaos'

/** Few enough to be used up in a moment, and enough for everyone when they are not. */
const maxConnections = 80

export class FieldServer {
  readonly cluster: Cluster
  readonly proxy: WireProxy
  /** Who stops or starts the server does so alone. */
  private turn: Promise<unknown> = Promise.resolve()
  private isUp = true

  private constructor(cluster: Cluster, proxy: WireProxy) {
    this.cluster = cluster
    this.proxy = proxy
  }

  static async start(): Promise<FieldServer> {
    const cluster = await startPostgres({
      version: 'embedded',
      settings: { max_connections: String(maxConnections), log_lock_waits: 'on', log_line_prefix: '%m [%p] %a ' },
    })
    return new FieldServer(cluster, await startWireProxy(`${cluster.url}?schema=${schema}`, { remembers: false }))
  }

  /** The direct way. */
  get url(): string {
    return `${this.cluster.url}?schema=${schema}`
  }

  /** Takes the server down, lets something happen, and has it up again in any case. */
  down(stop: 'immediate' | 'kill', meanwhile: () => Promise<void>): Promise<void> {
    return this.alone(async () => {
      this.isUp = false
      await (stop === 'kill' ? this.cluster.kill() : this.cluster.stop('immediate'))
      try {
        await meanwhile()
      } finally {
        await this.up()
      }
    })
  }

  /** Begins to start the server and kills it after so long, which may be before it is ready. Answers whether it was. */
  async startAndKill(afterMs: number): Promise<'ready' | 'recovering'> {
    let state: 'ready' | 'recovering' = 'recovering'
    const started = this.cluster.start().then(
      () => (state = 'ready'),
      // It was killed before.
      () => undefined,
    )
    await new Promise((resolve) => void setTimeout(resolve, afterMs))
    const found = state
    await this.cluster.kill()
    await started
    // It may just have been trying again, and have got up unharmed.
    await this.cluster.kill()
    return found
  }

  /** The server is up, and the network is as it should be. */
  heal(): Promise<void> {
    this.proxy.delay(0)
    this.proxy.muffle(false)
    this.proxy.hurry(null)
    this.proxy.mend()
    return this.alone(() => this.up())
  }

  /** Opens a connection by the direct way. */
  async open(): Promise<Client> {
    const client = new Client({
      connectionString: this.cluster.url,
      connectionTimeoutMillis: 5_000,
      statement_timeout: 5_000,
      application_name: 'outsider',
    })
    // A server that goes down takes it along; whoever uses it finds out.
    client.on('error', () => undefined)
    await client.connect()
    await client.query(`set search_path to ${schema}`)
    return client
  }

  /** Opens a connection for a while. */
  async connected<Answer>(use: (client: Client) => Promise<Answer>): Promise<Answer> {
    const client = await this.open()
    try {
      return await use(client)
    } finally {
      await client.end().catch(() => undefined)
    }
  }

  /** Does something to the backends of workers. Answers how many it was done to. */
  async strikeBackends(
    how: 'pg_terminate_backend' | 'pg_cancel_backend',
    client: Client,
    atMost = 1_000,
  ): Promise<number> {
    const which = how === 'pg_cancel_backend' ? `and state = 'active'` : ''
    const { rowCount } = await client.query(
      `select ${how}(pid) from (
         select pid from pg_stat_activity where client_port = any($1) ${which} order by random() limit $2
       ) as struck`,
      [this.proxy.ports, atMost],
    )
    return rowCount ?? 0
  }

  async remove(): Promise<void> {
    await this.alone(async () => {
      await this.proxy.close()
      await this.cluster.remove()
    })
  }

  private async up(): Promise<void> {
    if (this.isUp) return
    await this.cluster.start()
    this.isUp = true
  }

  private alone(work: () => Promise<void>): Promise<void> {
    const done = this.turn.then(work)
    this.turn = done.catch(() => undefined)
    return done
  }
}
