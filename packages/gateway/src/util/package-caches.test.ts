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

describe('sharedCaches', () => {
  it("are the folders of this process's user that exist, and else folders below the fallback", (t) => {
    const home = homeWith(t, '.npm', '.cache/uv')
    const caches = sharedCaches({}, '/instances/.caches', { HOME: home })
    assert.equal(caches['npm_config_cache'], path.join(home, '.npm'))
    assert.equal(caches['UV_CACHE_DIR'], path.join(home, '.cache/uv'))
    assert.equal(caches['GOMODCACHE'], '/instances/.caches/go/pkg/mod')
    assert.equal(new Set(Object.values(caches)).size, Object.keys(caches).length)
  })

  it('leave out what the file or the environment sets, in any case', () => {
    const env = { HOME: '/nowhere', NPM_CONFIG_CACHE: '/npm', UV_CACHE_DIR: '/uv' }
    const caches = sharedCaches({ PIP_CACHE_DIR: '/pip' }, '/f', env)
    for (const name of ['npm_config_cache', 'UV_CACHE_DIR', 'PIP_CACHE_DIR']) assert.ok(!(name in caches), name)
    assert.ok(!('npm_config_cache' in sharedCaches({ NPM_CONFIG_CACHE: '/npm' }, '/f', {})))
    assert.equal(sharedCaches({}, '/f', {})['npm_config_cache'], '/f/.npm')
  })

  it('follow the folders of the XDG specification', (t) => {
    const cache = homeWith(t, 'uv')
    assert.equal(sharedCaches({}, '/f', { HOME: '/x', XDG_CACHE_HOME: cache })['UV_CACHE_DIR'], path.join(cache, 'uv'))
  })
})
