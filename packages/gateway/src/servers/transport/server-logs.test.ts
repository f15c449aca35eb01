import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { systemClock } from '@toolgate/core/stores'
import { ServerLogs, STDERR, type UpstreamLogLine } from './server-logs.ts'

const line = (server: string, detail: string): UpstreamLogLine => ({ level: 'debug', server, message: STDERR, detail })

describe('ServerLogs', () => {
  it('keeps the latest lines of each server, and passes on what no child wrote', () => {
    const passed: string[] = []
    const logs = new ServerLogs(systemClock)
    const log = logs.keeping(({ message }) => passed.push(message))
    log(line('files', 'hello'))
    log({ level: 'warn', server: 'files', user: 'vera', message: 'is down', detail: 'exited' })
    log(line('other', 'else'))
    assert.deepEqual(
      logs.of('files').map(({ seq, level, user, text }) => [seq, level, user, text]),
      [
        [1, 'stderr', undefined, 'hello'],
        [2, 'warn', 'vera', 'is down (exited)'],
      ],
    )
    assert.deepEqual(passed, ['is down'])
    assert.deepEqual(
      logs.of('files', { after: 1 }).map(({ seq }) => seq),
      [2],
    )
    assert.deepEqual(logs.of('nothing'), [])
  })

  it('is bounded in lines and in their length', () => {
    const logs = new ServerLogs(systemClock)
    const log = logs.keeping(() => {})
    for (let i = 0; i < 600; i++) log(line('files', `${i} ${'x'.repeat(5000)}`))
    const kept = logs.of('files')
    assert.deepEqual([kept.length, kept[0]?.seq, kept[0]?.text.length], [500, 101, 2000])
    assert.equal(logs.of('files', { limit: 3 }).length, 3)
  })
})
