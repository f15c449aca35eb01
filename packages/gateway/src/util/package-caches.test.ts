import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { sharedCaches } from './package-caches.ts'

function homeWith(t: TestContext, ...folders: readonly string[]): string {
  const home = mkdtempSync(path.join(tmpdir(), 'toolgate-home-'))
  t.after(() => rmSync(home, { recursive: true }))
  for (const folder of folders) mkdirSync(path.join(home, folder), { recursive: true })
  return home
}

const cachesOf = (set: Record<string, string>, env: Record<string, string>, command = 'npx') =>
  sharedCaches({ command, set, fallback: '/f' }, env)

describe('sharedCaches', () => {
  it("are the folders of this process's user that exist, and else folders below the fallback", (t) => {
    const home = homeWith(t, '.npm', '.cache/uv')
    const caches = cachesOf({}, { HOME: home })
    assert.equal(caches['npm_config_cache'], path.join(home, '.npm'))
    assert.equal(caches['UV_CACHE_DIR'], path.join(home, '.cache/uv'))
    assert.equal(caches['GOMODCACHE'], '/f/go/pkg/mod')
    assert.equal(new Set(Object.values(caches)).size, Object.keys(caches).length)
  })

  it('leave out what the file or the environment sets, in any case', () => {
    const env = { HOME: '/nowhere', NPM_CONFIG_CACHE: '/npm', UV_CACHE_DIR: '/uv' }
    const caches = cachesOf({ PIP_CACHE_DIR: '/pip' }, env)
    for (const name of ['npm_config_cache', 'UV_CACHE_DIR', 'PIP_CACHE_DIR']) assert.ok(!(name in caches), name)
    assert.ok(!('npm_config_cache' in cachesOf({ NPM_CONFIG_CACHE: '/npm' }, {})))
    assert.equal(cachesOf({}, {})['npm_config_cache'], '/f/.npm')
  })

  it('follow the folders of the XDG specification', (t) => {
    const cache = homeWith(t, 'uv')
    assert.equal(cachesOf({}, { HOME: '/x', XDG_CACHE_HOME: cache })['UV_CACHE_DIR'], path.join(cache, 'uv'))
  })

  it('has the variables of pnpm for pnpm alone, as npm warns of them', () => {
    assert.ok(!('npm_config_store_dir' in cachesOf({}, {})))
    for (const command of ['pnpm', '/usr/bin/pnpx'])
      assert.equal(cachesOf({}, {}, command)['npm_config_store_dir'], '/f/.local/share/pnpm/store')
  })
})
