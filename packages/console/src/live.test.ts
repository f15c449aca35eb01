import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Live } from './live.ts'

const FIRST = '{"type":"groups","groups":[]}'

describe('Live', () => {
  it('passes messages on, and ignores invalid ones', () => {
    const { live, sockets } = setUp()
    const types: string[] = []
    live.onMessage(({ type }) => types.push(type))
    live.start()
    assert.equal(live.current, 'connecting')
    for (const data of ['{', 'null']) sockets[0]?.hear(data)
    assert.equal(live.current, 'connecting')
    sockets[0]?.hear(FIRST)
    assert.equal(live.current, 'open')
    for (const data of ['{', 'null', '{"type":"later"}', 7, '{"type":"__proto__"}']) sockets[0]?.hear(data)
    assert.deepEqual(types, ['groups'])
  })

  it('reports a lost socket, retries less and less often, and is open again', () => {
    const { live, sockets, delays, pass } = setUp()
    live.start()
    sockets[0]?.hear(FIRST)
    for (let i = 0; i < 8; i++) {
      sockets.at(-1)?.end()
      assert.equal(live.current, 'lost')
      pass()
    }
    assert.deepEqual(delays, [250, 500, 1000, 2000, 4000, 5000, 5000, 5000])
    sockets.at(-1)?.hear(FIRST)
    assert.equal(live.current, 'open')
    sockets.at(-1)?.end()
    assert.equal(delays.at(-1), 250)
  })

  it('is polling if no socket ever opened, and keeps retrying', () => {
    const { live, sockets, delays, pass } = setUp()
    live.start()
    for (let i = 0; i < 10; i++) {
      sockets.at(-1)?.end()
      assert.equal(live.current, 'polling')
      pass()
    }
    assert.equal(delays.at(-1), 30_000)
  })

  it('is silent after close, and can be started again', () => {
    const { live, sockets, delays } = setUp()
    live.start()
    const [first] = sockets
    live.close()
    assert.ok(first?.isClosed)
    first.hear(FIRST)
    first.end()
    assert.deepEqual([delays.length, live.current], [0, 'connecting'])
    live.start()
    assert.equal(sockets.length, 2)
  })
})

interface Socket {
  readonly hear: (data: unknown) => void
  readonly end: () => void
  isClosed: boolean
}

function setUp() {
  const sockets: Socket[] = []
  const delays: number[] = []
  let due: (() => void) | undefined
  const live = new Live({
    open(hear, end) {
      const socket: Socket = { hear, end, isClosed: false }
      sockets.push(socket)
      return () => (socket.isClosed = true)
    },
    later(work, ms) {
      delays.push(ms)
      due = work
      return () => {
        due = undefined
      }
    },
    random: () => 0.5,
  })
  return { live, sockets, delays, pass: () => due?.() }
}
