import assert from 'node:assert/strict'
import { closeSync, openSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { linesBackwards, linesForwards } from './lines.ts'
import { scratchFolder } from './testing/scratch-folder.ts'

/** Returns the lines of a file, read in both directions, and whether bytes follow them. */
function readBoth(t: TestContext, content: string | Buffer) {
  const path = join(scratchFolder(t), 'lines')
  writeFileSync(path, content)
  const fd = openSync(path, 'r')
  try {
    const { size } = statSync(path)
    const forwards: string[] = []
    const groups = linesForwards(fd, size)
    let group = groups.next()
    for (; group.done !== true; group = groups.next()) forwards.push(...group.value)
    const backwards = [...linesBackwards(fd, size)]
    return { forwards, backwards, hasMore: group.value }
  } finally {
    closeSync(fd)
  }
}

describe('the lines of a file', () => {
  it('are the same forwards and backwards, also where they are longer than what is read at once', (t) => {
    const lines = ['a', '', 'ö'.repeat(70_000), 'b', 'c'.repeat(3_000_000), 'd'.repeat(65_535), 'e']
    const { forwards, backwards, hasMore } = readBoth(t, `${lines.join('\n')}\ncut off`)
    assert.deepEqual(forwards, lines)
    assert.deepEqual(backwards.map(({ text }) => text).toReversed(), lines)
    assert.equal(hasMore, true)
    for (const { text, start, end } of backwards) assert.equal(end - start, Buffer.byteLength(text) + 1)
  })

  it('are each decoded for themselves: one that is not UTF-8 changes no other', (t) => {
    const bytes = Buffer.concat([Buffer.from('Zoë\n'), Buffer.from([0x61, 0xff, 0x0a]), Buffer.from('\nZoë\n')])
    assert.deepEqual(readBoth(t, bytes).forwards, ['Zoë', 'aÿ', '', 'Zoë'])
  })
})
