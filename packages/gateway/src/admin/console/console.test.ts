import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { type Console, createConsole } from './console.ts'

describe('createConsole', () => {
  let dir: string
  let site: Console
  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'toolgate-console-'))
    mkdirSync(join(dir, 'dist', 'assets'), { recursive: true })
    writeFileSync(join(dir, 'secret.html'), 'secret')
    writeFileSync(join(dir, 'dist', 'index.html'), '<!doctype html>')
    writeFileSync(join(dir, 'dist', 'assets', 'index-abc.js'), 'export {}')
    writeFileSync(join(dir, 'dist', 'assets', 'index-abc.js.map'), '{}')
    symlinkSync(join(dir, 'secret.html'), join(dir, 'dist', 'link.html'))
    site = createConsole(join(dir, 'dist'))
  })
  after(() => rmSync(dir, { recursive: true }))

  it('serves the page at its root under a strict policy', async () => {
    for (const path of ['/', '/index.html', '/?x=1']) {
      const page = await get(path)
      assert.equal(page.status, 200)
      assert.equal(await page.text(), '<!doctype html>')
      assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8')
      assert.equal(page.headers.get('cache-control'), 'no-cache')
    }
    const page = await get('/')
    assert.equal(
      page.headers.get('content-security-policy'),
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    )
    assert.equal(page.headers.get('x-content-type-options'), 'nosniff')
    assert.equal(page.headers.get('referrer-policy'), 'no-referrer')
  })

  it('lets hashed assets be kept for ever', async () => {
    const script = await get('/assets/index-abc.js')
    assert.equal(script.headers.get('cache-control'), 'public, max-age=31536000, immutable')
    assert.equal(script.headers.get('content-type'), 'text/javascript; charset=utf-8')
  })

  it('compresses for those who ask, and answers 304 to those who have it', async () => {
    const zipped = await get('/', { 'accept-encoding': 'br, gzip' })
    assert.equal(zipped.headers.get('content-encoding'), 'gzip')
    assert.equal(gunzipSync(await zipped.arrayBuffer()).toString(), '<!doctype html>')
    assert.equal((await get('/', { 'accept-encoding': 'gzip;q=0' })).headers.get('content-encoding'), null)
    const again = await get('/', { 'if-none-match': zipped.headers.get('etag') ?? '' })
    assert.equal(again.status, 304)
  })

  it('finds nothing outside its folder, by any spelling', async () => {
    const paths = [
      '/../secret.html',
      '/..%2fsecret.html',
      '/%2e%2e/secret.html',
      '//secret.html',
      '/assets/../../secret.html',
      '/link.html',
      '/..\\secret.html',
      '/assets',
      '/assets/index-abc.js.map',
      '/assets/index-abc.js%00.html',
      '/constructor',
      '/__proto__',
    ]
    for (const path of paths) assert.equal((await get(path)).status, 404, path)
  })

  it('serves GET and HEAD only', async () => {
    const head = await site.fetch(new Request('http://localhost/', { method: 'HEAD' }))
    assert.deepEqual([head.status, await head.text(), head.headers.get('content-length')], [200, '', '15'])
    const answer = await site.fetch(new Request('http://localhost/', { method: 'POST' }))
    assert.deepEqual([answer.status, answer.headers.get('allow')], [405, 'GET, HEAD'])
  })

  it('shows how to build it while it is not built, and serves it as soon as it is', async () => {
    const later = join(dir, 'later')
    const unbuilt = createConsole(later)
    const answer = await unbuilt.fetch(new Request('http://localhost/'))
    assert.equal(answer.status, 503)
    assert.match(await answer.text(), /npm run build --workspace packages\/console/)
    mkdirSync(later)
    writeFileSync(join(later, 'index.html'), 'built')
    assert.equal(await (await unbuilt.fetch(new Request('http://localhost/'))).text(), 'built')
  })

  function get(path: string, headers: Record<string, string> = {}): Promise<Response> {
    return site.fetch(new Request(`http://localhost${path}`, { headers }))
  }
})
