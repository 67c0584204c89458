// What all test files of a run share, made when the first of them asks for it: a run that needs none pays nothing. Files run in
// processes of their own, so they ask over HTTP, at an address that nobody else can guess.

import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface LazilyShared {
  /** Answers with the text that was made, and has it made first if it must. */
  readonly address: string
  readonly close: () => void
}

/** `make` is called once. */
export async function shareLazily(make: () => Promise<string>): Promise<LazilyShared> {
  const token = `/${randomBytes(16).toString('hex')}`
  let made: Promise<string> | null = null
  const server = createServer((request, response) => {
    if (request.url !== token) return void response.writeHead(404).end()
    made ??= make()
    made.then(
      (text) => response.end(text),
      (error: unknown) => response.writeHead(500).end(error instanceof Error ? error.message : String(error)),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    address: `http://127.0.0.1:${port}${token}`,
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

export async function askFor(address: string): Promise<string> {
  const response = await fetch(address)
  const text = await response.text()
  if (!response.ok) throw new Error(text)
  return text
}
