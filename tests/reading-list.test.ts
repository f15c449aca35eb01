import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { isPassedThrough, touchedBy } from '../scripts/shape/touched.ts'

const ARCHITECTURE = path.join(import.meta.dirname, '../ARCHITECTURE.md')
const MOST = { files: 29, functions: 98, passedThrough: 7 }

/** Returns the files that ARCHITECTURE.md lists for one call. */
function readingList(): readonly string[] {
  const [, list = ''] =
    /<!-- one call -->\n([\s\S]*?)<!-- \/one call -->/.exec(readFileSync(ARCHITECTURE, 'utf8')) ?? []
  return [...list.matchAll(/^\d+\. `([^`]+)`/gm)].map(([, file]) => `packages/${file}`)
}

describe('ARCHITECTURE.md', () => {
  it('is read in a few minutes, and names files that are there', () => {
    const text = readFileSync(ARCHITECTURE, 'utf8')
    assert.ok(text.split(/\s+/).length <= 900, `${text.split(/\s+/).length} words`)
    const named = [...text.matchAll(/`((?:\w+\/src|scripts|tests)\/[^`]+)`/g)].map(([, file]) => file ?? '')
    assert.ok(named.length > 20)
    const root = path.dirname(ARCHITECTURE)
    const isThere = (file: string) => ['', 'packages'].some((folder) => existsSync(path.join(root, folder, file)))
    assert.deepEqual(
      named.filter((file) => !isThere(file)),
      [],
    )
  })
})

describe('the reading list of one call', async () => {
  const { files, functions } = await touchedBy('view-call')
  const entered = files.map((file) => file.path)

  it('has every file in which a plain call does something', () => {
    const listed = new Set(readingList())
    const spine = files.filter((file) => !isPassedThrough(file)).map((file) => file.path)
    assert.deepEqual(
      spine.filter((file) => !listed.has(file)),
      [],
    )
  })

  it('has no file that a plain call does not enter', () => {
    const listed = readingList()
    assert.ok(listed.length > 0)
    assert.deepEqual(
      listed.filter((file) => !entered.includes(file)),
      [],
    )
  })

  it('stays as short as a person can read', () => {
    assert.ok(files.length <= MOST.files, `${files.length} files: ${entered.join(', ')}`)
    assert.ok(functions <= MOST.functions, `${functions} functions`)
    const passed = files.filter(isPassedThrough).map((file) => file.path)
    assert.ok(passed.length <= MOST.passedThrough, `nothing to do in ${passed.join(', ')}`)
  })
})
