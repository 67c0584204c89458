// The thread of `libsql-server.ts`.

// oxlint-disable unicorn/require-post-message-target-origin -- to a thread, not to a window

import { createServer } from 'node:http'
import { parentPort } from 'node:worker_threads'
import Database from 'libsql'

/** @type {Map<string, Database.Database>} by baton */
const streams = new Map()
let batons = 0
let requests = 0
let answersLeft = Infinity
/** @type {Set<string>} */
const tokens = new Set()

/** @param {{ type: string, value?: unknown }} value */
const fromWire = ({ type, value }) => (type === 'null' ? null : type === 'integer' ? Number(value) : value)

/** @param {unknown} value */
function toWire(value) {
  if (typeof value === 'string') return { type: 'text', value }
  if (typeof value !== 'number') return { type: 'null' }
  return Number.isInteger(value) ? { type: 'integer', value: String(value) } : { type: 'float', value }
}

/** @param {unknown} error */
const errorOf = (error) => ({
  message: error instanceof Error ? error.message : String(error),
  code: error instanceof Error && 'code' in error ? error.code : 'UNKNOWN',
})

/**
 * @param {Database.Database} database
 * @param {{ sql: string, args: { type: string, value?: unknown }[] }} stmt
 */
function execute(database, { sql, args }) {
  const statement = database.prepare(sql)
  const values = args.map(fromWire)
  const cols = statement.reader ? statement.columns().map(({ name }) => ({ name, decltype: null })) : []
  const rows = statement.reader ? statement.raw().all(values) : []
  const changes = statement.reader ? 0 : statement.run(values).changes
  return {
    cols,
    rows: rows.map((row) => /** @type {unknown[]} */ (row).map(toWire)),
    affected_row_count: changes,
    last_insert_rowid: null,
    replication_index: null,
    rows_read: 0,
    rows_written: 0,
    query_duration_ms: 0,
  }
}

/** Steps go on while the one that they name has succeeded. */
function batch(database, { steps }) {
  const results = []
  const errors = []
  for (const { condition, stmt } of steps) {
    const skipped = condition?.type === 'ok' && results[condition.step] === null
    let result = null
    let failure = null
    try {
      if (!skipped) result = execute(database, stmt)
    } catch (error) {
      failure = errorOf(error)
    }
    results.push(result)
    errors.push(failure)
  }
  return { step_results: results, step_errors: errors, replication_index: null }
}

function answerTo(database, request) {
  if (request.type === 'batch') return { type: 'batch', result: batch(database, request.batch) }
  if (request.type === 'get_autocommit') return { type: 'get_autocommit', is_autocommit: !database.inTransaction }
  if (request.type === 'close') return { type: 'close' }
  if (request.type === 'describe') {
    const statement = database.prepare(request.sql)
    const cols = statement.reader ? statement.columns().map(({ name }) => ({ name, decltype: null })) : []
    return { type: 'describe', result: { params: [], cols, is_explain: false, is_readonly: statement.reader } }
  }
  throw new Error(`This server does not know ${request.type}`)
}

function streamOf(baton, file) {
  const known = baton === null ? undefined : streams.get(baton)
  if (baton !== null && known === undefined) return null
  if (baton !== null) streams.delete(baton)
  if (known !== undefined) return known
  const database = new Database(file)
  database.exec('pragma journal_mode = wal; pragma synchronous = off; pragma busy_timeout = 50')
  return database
}

function keep(database) {
  const baton = `baton-${(batons += 1)}`
  streams.set(baton, database)
  return baton
}

function closeStream(database) {
  if (database.inTransaction) database.exec('rollback')
  database.close()
}

function pipeline(database, body) {
  const results = body.requests.map((request) => {
    try {
      return { type: 'ok', response: answerTo(database, request) }
    } catch (error) {
      return { type: 'error', error: errorOf(error) }
    }
  })
  const isClosed = body.requests.some(({ type }) => type === 'close')
  if (isClosed) closeStream(database)
  return JSON.stringify({ baton: isClosed ? null : keep(database), base_url: null, results })
}

function cursor(database, body) {
  const { step_results: results, step_errors: errors } = batch(database, body.batch)
  const lines = [{ baton: keep(database), base_url: null }]
  for (const [step, result] of results.entries()) {
    if (errors[step] !== null) lines.push({ type: 'step_error', step, error: errors[step] })
    if (result === null) continue
    lines.push({ type: 'step_begin', step, cols: result.cols })
    for (const row of result.rows) lines.push({ type: 'row', row })
    lines.push({ type: 'step_end', affected_row_count: result.affected_row_count, last_insert_rowid: null })
  }
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('')
}

function answer(url, text) {
  const [, file, kind] = /^(.*)\/v3\/(pipeline|cursor)$/.exec(url) ?? []
  if (file === undefined) return { status: 404, body: '' }
  const body = JSON.parse(text)
  const database = streamOf(body.baton, file)
  if (database === null) return { status: 404, body: '{"error":"The stream has expired","code":"STREAM_EXPIRED"}' }
  return { status: 200, body: kind === 'cursor' ? cursor(database, body) : pipeline(database, body) }
}

const server = createServer((request, response) => {
  request.setEncoding('utf8')
  let text = ''
  request.on('data', (chunk) => (text += chunk))
  request.on('end', () => {
    const token = (request.headers.authorization ?? '').replace('Bearer ', '')
    requests += 1
    tokens.add(token)
    if (token === 'wrong-token') {
      response.statusCode = 401
      response.end('{"error":"Unauthorized"}')
      return
    }
    const { status, body } = answer(request.url ?? '', text)
    // What was asked has been done: the one who asked does not learn it.
    if ((answersLeft -= 1) < 0) {
      request.socket.destroy()
      return
    }
    response.statusCode = status
    response.end(body)
  })
})

parentPort?.on('message', ({ kind, requests: most }) => {
  if (kind === 'seen') {
    parentPort?.postMessage({ requests, tokens: [...tokens] })
    requests = 0
    tokens.clear()
    return
  }
  if (kind === 'forget') {
    for (const database of streams.values()) closeStream(database)
    streams.clear()
  }
  if (kind === 'break') answersLeft = most
  parentPort?.postMessage(null)
})

server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  parentPort?.postMessage(typeof address === 'object' ? address?.port : null)
})
