// The Postgres of a testbed: a cluster of its own that writes to disk what it acknowledges, and in front of it the proxy
// through which the workers reach it. Everyone else comes by the direct way. Both ways keep their address when another cluster
// takes the place of this one. On Citus it is the coordinator that workers reach, and behind it stand two nodes with the rows.

import { Client, Pool } from 'pg'
import { migrate } from '../../src/stores/postgres/schema/migrate.ts'
import { startCitus, type CitusCluster } from '../support/citus.ts'
import { startPostgres, type Cluster } from '../support/postgres.ts'
import { startRelay, type Relay } from '../support/relay.ts'
import { startStandby } from '../support/standby.ts'
import { startWireProxy, type WireProxy } from '../support/wire-proxy.ts'

const schema = 'chaos'

/** Few enough to be used up in a moment, and enough for everyone when they are not. */
const maxConnections = 80

const settings = { max_connections: String(maxConnections), log_lock_waits: 'on', log_line_prefix: '%m [%p] %a ' }

export class TestbedServer {
  readonly proxy: WireProxy
  private readonly relay: Relay
  private current: Cluster
  private readonly citus: CitusCluster | null
  /** Who stops or starts the server does so alone. */
  private turn: Promise<unknown> = Promise.resolve()
  private isUp = true

  private constructor(cluster: Cluster, citus: CitusCluster | null, proxy: WireProxy, relay: Relay) {
    this.current = cluster
    this.citus = citus
    this.proxy = proxy
    this.relay = relay
  }

  static async start(kind: 'postgres' | 'citus' = 'postgres'): Promise<TestbedServer> {
    const citus = kind === 'citus' ? await startSpread() : null
    const cluster = citus?.coordinator ?? (await startPostgres({ version: 'embedded', settings }))
    const proxy = await startWireProxy(`${cluster.url}?schema=${schema}`, { remembers: false })
    return new TestbedServer(cluster, citus, proxy, await startRelay(cluster.port))
  }

  get cluster(): Cluster {
    return this.current
  }

  /** The direct way. */
  get url(): string {
    const url = new URL(`${this.cluster.url}?schema=${schema}`)
    url.port = `${this.relay.port}`
    return url.href
  }

  /**
   * Makes a standby of the server, kills the server in the middle of its work and promotes the standby, behind the same
   * addresses. The standby has all that was acknowledged, or, if it has lost touch, lacks the last of it. `happens` is called
   * when the server is gone and when the standby serves.
   */
  failOver(
    { isInTouch, serve }: { readonly isInTouch: boolean; readonly serve: () => Promise<void> },
    happens: (state: 'down' | 'up') => void,
  ): Promise<void> {
    return this.alone(async () => {
      const primary = this.current
      const standby = await startStandby(primary, settings)
      try {
        if (isInTouch) await standby.followSynchronously()
        else await standby.loseTouch()
        await serve()
        await primary.kill()
        happens('down')
        await standby.promote()
      } catch (error) {
        await standby.remove()
        throw error
      }
      this.current = standby
      this.relay.aim(standby.port)
      this.proxy.aim(standby.port)
      happens('up')
      await primary.remove()
    })
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

  /** The same with one of the nodes that have the rows, of which there are two. */
  nodeDown(nth: number, stop: 'immediate' | 'kill', meanwhile: () => Promise<void>): Promise<void> {
    const node = this.citus?.workers[nth]
    if (node === undefined) throw new Error('The server of this testbed has no such node.')
    return this.alone(async () => {
      await (stop === 'kill' ? node.kill() : node.stop('immediate'))
      try {
        await meanwhile()
      } finally {
        await node.start()
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
    // A server that goes down takes it along; its users find out.
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
      await this.relay.close()
      await (this.citus ?? this.cluster).remove()
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

/** Shards of the store in a cluster of Citus. */
const shards = 8

/** A cluster that writes to disk what it acknowledges, with the tables spread over its nodes. */
async function startSpread(): Promise<CitusCluster> {
  const citus = await startCitus({ ...settings, max_connections: '300', fsync: 'on' })
  const pool = new Pool({ connectionString: citus.url, max: 1 })
  try {
    await migrate(pool, { schema, shards, citus: true })
    return citus
  } catch (error) {
    await citus.remove()
    throw error
  } finally {
    await pool.end()
  }
}
