import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { buildConsole } from './browser.ts'

const BUDGET_BYTES = 260 * 1000
/** React alone is 60 KB of it, what several pages share 50 KB. */
const START_BYTES = 135 * 1024
/** The files that send the first requests, before React is loaded. */
const FIRST_BYTES = 6 * 1024

describe('the bundle of the console', () => {
  it('is at most 260 kB, compressed as the gateway does it, and loads pages and charts when they are shown', () => {
    const dir = buildConsole()
    const files = readdirSync(dir, { recursive: true, encoding: 'utf8' }).filter((name) =>
      /\.(js|css|html)$/.test(name),
    )
    const sizes = files.map((name) => ({ name, bytes: gzipSync(readFileSync(join(dir, name))).length }))
    const sum = (those: typeof sizes): number => those.reduce((all, { bytes }) => all + bytes, 0)
    assert.ok(
      sizes.some(({ name }) => name.includes('charts-')),
      'the charts are separate',
    )
    const page = readFileSync(join(dir, 'index.html'), 'utf8')
    const started = sizes.filter(({ name }) => name.endsWith('.js') && page.includes(name))
    assert.deepEqual(started.map(({ name }) => /[a-z]+(?=-)/.exec(name)?.[0]).toSorted(), [
      'app',
      'first',
      'index',
      'start',
    ])
    assert.ok(sum(started) <= START_BYTES, `what every page loads: ${sum(started)} bytes`)
    const first = started.filter(({ name }) => /first-|index-/.test(name))
    assert.ok(sum(first) <= FIRST_BYTES, `what sends the first requests: ${sum(first)} bytes`)
    assert.ok(
      sum(sizes) <= BUDGET_BYTES,
      `${sum(sizes)} bytes: ${sizes.map(({ name, bytes }) => `${name} ${bytes}`).join(', ')}`,
    )
    assert.doesNotMatch(page, /charts-|<script(?![^>]*\bsrc=)|<style|\sstyle=/, 'nothing inline, and no chart at first')
  })
})
