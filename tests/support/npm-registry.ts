import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import path from 'node:path'

/** A registry of npm with one package, whose command is an MCP server. */
export interface NpmRegistry {
  readonly url: string
  /** How often the package was downloaded. */
  readonly downloads: number
  /** Delays each download until this promise has resolved. */
  hold: Promise<void>
  close(): Promise<void>
}

/** The program of the package: an MCP server with one tool, that tells its environment. */
const PROGRAM = `#!/usr/bin/env node
const { createInterface } = require('node:readline')
const answers = {
  initialize: () => ({ protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'packed', version: '1' } }),
  'tools/list': () => ({ tools: [{ name: 'home', inputSchema: { type: 'object' } }] }),
  'tools/call': () => ({ content: [{ type: 'text', text: process.env.HOME }] }),
}
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line)
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: answers[method]?.() ?? {} }))
})
`

/** Packs a package of this name below `folder`, and serves it on loopback; with a certificate over TLS. */
export async function startNpmRegistry(
  folder: string,
  name: string,
  tls?: { readonly certFile: string; readonly keyFile: string },
): Promise<NpmRegistry> {
  const from = path.join(folder, 'package')
  mkdirSync(from)
  const version = '1.0.0'
  const manifest = { name, version, bin: { [name]: 'server.js' } }
  writeFileSync(path.join(from, 'package.json'), JSON.stringify(manifest))
  writeFileSync(path.join(from, 'server.js'), PROGRAM, { mode: 0o755 })
  const file = path.join(folder, `${name}-${version}.tgz`)
  execFileSync('tar', ['-czf', file, '-C', folder, 'package'])
  const bytes = readFileSync(file)
  const integrity = `sha512-${createHash('sha512').update(bytes).digest('base64')}`
  const state = { downloads: 0, hold: Promise.resolve() }
  const answer = async ({ url = '' }: IncomingMessage, response: ServerResponse) => {
    if (url.endsWith('.tgz')) {
      state.downloads++
      await state.hold
      return response.end(bytes)
    }
    if (url !== `/${name}`) return response.writeHead(404).end('{}')
    const dist = { tarball: `${origin}/${name}/-/${name}-${version}.tgz`, integrity }
    const versions = { [version]: { ...manifest, dist } }
    return response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ name, 'dist-tags': { latest: version }, versions }))
  }
  const listener: RequestListener = (request, response) => void answer(request, response)
  const http = tls
    ? createTlsServer({ cert: readFileSync(tls.certFile), key: readFileSync(tls.keyFile) }, listener)
    : createServer(listener)
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const origin = `${tls ? 'https' : 'http'}://127.0.0.1:${(http.address() as AddressInfo).port}`
  const close = async () => {
    http.closeAllConnections()
    await new Promise((resolve) => http.close(resolve))
  }
  return Object.assign(state, { url: `${origin}/`, close })
}
