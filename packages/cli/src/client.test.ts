import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findTarget } from './client.ts'

describe('findTarget', () => {
  it('tries the demo key on this machine only', () => {
    for (const url of ['http://127.0.0.1:8787', 'http://localhost:9000', 'http://[::1]:8787', 'http://127.8.9.10'])
      assert.equal(findTarget({ url }, {}).key, 'demo-console', url)
    for (const url of [
      'http://gateway.example',
      'http://127.0.0.1.example',
      'http://localhost.example',
      'http://10.0.0.1',
    ])
      assert.equal(findTarget({ url }, {}).key, undefined, url)
  })

  it('takes --key before TOOLGATE_KEY, and --url before TOOLGATE_URL', () => {
    const env = { TOOLGATE_KEY: 'from-env', TOOLGATE_URL: 'http://env.example/path' }
    const options = { key: 'from-option', url: 'http://option.example' }
    assert.deepEqual(pick(findTarget(options, env)), ['http://option.example', 'from-option'])
    assert.deepEqual(pick(findTarget({}, env)), ['http://env.example', 'from-env'])
    assert.deepEqual(pick(findTarget({}, {})), ['http://127.0.0.1:8787', 'demo-console'])
  })
})

function pick({ url, key }: { url: string; key: string | undefined }): unknown[] {
  return [url, key]
}
