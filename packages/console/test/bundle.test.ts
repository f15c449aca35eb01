import assert from 'node:assert/strict'
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { buildConsole } from './browser.ts'

const BUDGET_BYTES = 250 * 1024
/** React alone is 60 KB of it. */
const ENTRY_BYTES = 90 * 1024

describe('the bundle of the console', () => {
  it('is at most 250 KB, compressed as the gateway does it, and loads pages and charts when they are shown', async () => {
    const dir = await buildConsole()
    try {
      const files = readdirSync(dir, { recursive: true, encoding: 'utf8' }).filter((name) =>
        /\.(js|css|html)$/.test(name),
      )
      const sizes = files.map((name) => ({ name, bytes: gzipSync(readFileSync(join(dir, name))).length }))
      const total = sizes.reduce((sum, { bytes }) => sum + bytes, 0)
      assert.ok(
        sizes.some(({ name }) => name.includes('charts-')),
        'the charts are separate',
      )
      const entry = sizes.find(({ name }) => /index-.*\.js$/.test(name))
      assert.ok(entry && entry.bytes <= ENTRY_BYTES, `what every page loads: ${entry?.bytes} bytes`)
      assert.ok(
        total <= BUDGET_BYTES,
        `${total} bytes: ${sizes.map(({ name, bytes }) => `${name} ${bytes}`).join(', ')}`,
      )
      const page = readFileSync(join(dir, 'index.html'), 'utf8')
      assert.doesNotMatch(
        page,
        /charts-|<script(?![^>]*\bsrc=)|<style|\sstyle=/,
        'nothing inline, and no chart at first',
      )
    } finally {
      rmSync(dir, { recursive: true })
    }
  })
})
