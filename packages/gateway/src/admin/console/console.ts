import { createHash } from 'node:crypto'
import { type Dirent, readdirSync, readFileSync } from 'node:fs'
import { extname, join, relative, sep } from 'node:path'
import { gzipSync } from 'node:zlib'
import { once } from '../../util/lifecycle.ts'

export interface Console {
  /** Answers GET and HEAD requests for the console's files. */
  fetch(request: Request): Promise<Response>
}

/** Allows only our own scripts, styles and requests. No page may frame the console. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "font-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

const HEADERS = {
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
}

const CONTENT_TYPES: ReadonlyMap<string, string> = new Map([
  ['.html', 'text/html; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
  ['.png', 'image/png'],
  ['.woff2', 'font/woff2'],
])

/** Files in this folder have a content hash in their name. */
const HASHED = '/assets/'
const NOT_BUILT = `The console is not built.

Build it with:  npm run build --workspace packages/console
Then load this page again. The gateway itself works without it.
`

/**
 * Serves the built console from a folder.
 *
 * The files are listed once, and requests are looked up in the list, so no path is built from client input. If
 * `index.html` is missing, a page explains how to build the console.
 */
export function createConsole(dir: string): Console {
  let files = findFiles(dir)
  return {
    async fetch(request) {
      if (request.method !== 'GET' && request.method !== 'HEAD')
        return text(405, 'Only GET and HEAD are allowed.\n', { allow: 'GET, HEAD' })
      if (!files.has('/')) files = findFiles(dir)
      if (!files.has('/')) return text(503, NOT_BUILT, { 'cache-control': 'no-store' })
      const file = files.get(new URL(request.url).pathname)
      return file ? serve(file(), request) : text(404, 'Not found.\n')
    },
  }
}

interface StaticFile {
  readonly contentType: string
  readonly cacheControl: string
  readonly etag: string
  readonly body: Uint8Array<ArrayBuffer>
  readonly gzipped: Uint8Array<ArrayBuffer>
}

/** Returns the files by URL path. Each file is read at its first request. */
function findFiles(dir: string): ReadonlyMap<string, () => StaticFile> {
  const files = new Map<string, () => StaticFile>()
  for (const entry of listFiles(dir)) {
    const contentType = CONTENT_TYPES.get(extname(entry.name))
    if (contentType === undefined) continue
    const path = join(entry.parentPath, entry.name)
    const name = `/${relative(dir, path).split(sep).join('/')}`
    const file = once(() => readStatic(path, name, contentType))
    files.set(name, file)
    if (name === '/index.html') files.set('/', file)
  }
  return files
}

function listFiles(dir: string): Dirent[] {
  try {
    return readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  } catch {
    return []
  }
}

function readStatic(path: string, name: string, contentType: string): StaticFile {
  const body = new Uint8Array(readFileSync(path))
  return {
    contentType,
    cacheControl: name.startsWith(HASHED) ? 'public, max-age=31536000, immutable' : 'no-cache',
    etag: `"${createHash('sha256').update(body).digest('base64url')}"`,
    body,
    gzipped: new Uint8Array(gzipSync(body)),
  }
}

function serve(file: StaticFile, request: Request): Response {
  const headers = { ...HEADERS, 'cache-control': file.cacheControl, etag: file.etag, vary: 'accept-encoding' }
  if (request.headers.get('if-none-match') === file.etag) return new Response(null, { status: 304, headers })
  const gzip = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i.test(request.headers.get('accept-encoding') ?? '')
  const body = gzip ? file.gzipped : file.body
  return new Response(request.method === 'HEAD' ? null : body, {
    headers: {
      ...headers,
      'content-type': file.contentType,
      'content-length': String(body.byteLength),
      ...(gzip ? { 'content-encoding': 'gzip' } : {}),
    },
  })
}

function text(status: number, body: string, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(body, {
    status,
    headers: { ...HEADERS, 'content-type': 'text/plain; charset=utf-8', ...headers },
  })
}
