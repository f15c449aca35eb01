import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ConfigError } from '@toolgate/core'
import { commandProbe, envProbe, httpProbe, tcpProbe } from './servers/probes/index.ts'
import { loadConfig, readConfig, startGateway } from './index.ts'

/** Takes a value past the compiler, as a variable of a wider type does. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the type is the caller's to say
function loose<T>(value: unknown): T {
  return value as T
}

const MISSPELLINGS: readonly (readonly [name: string, key: string, meant: string, use: () => unknown])[] = [
  ['startGateway', 'consoledir', 'consoleDir', () => startGateway(loose({}), loose({ consoledir: '/tmp' }))],
  ['loadConfig', 'enve', 'env', () => loadConfig('toolgate.yaml', loose({ enve: {} }))],
  ['readConfig', 'enve', 'env', () => readConfig('toolgate.yaml', loose({ enve: {} }))],
  ['envProbe', 'equal', 'equals', () => envProbe('KEY', loose({ equal: 'on' }))],
  ['tcpProbe', 'timeout', 'timeoutMs', () => tcpProbe({ host: 'localhost', port: 1 }, loose({ timeout: 1 }))],
  ['tcpProbe', 'prt', 'port', () => tcpProbe(loose({ host: 'localhost', prt: 1 }))],
  ['httpProbe', 'header', 'headers', () => httpProbe('http://localhost', loose({ header: {} }))],
  ['commandProbe', 'timeout', 'timeoutMs', () => commandProbe(['true'], loose({ timeout: 1 }))],
]

describe('options of @toolgate/gateway', () => {
  for (const [name, key, meant, use] of MISSPELLINGS)
    it(`of ${name} with "${key}" name "${meant}"`, async () => {
      await assert.rejects(
        async () => use(),
        (error: Error) =>
          error instanceof ConfigError &&
          error.message.includes(key) &&
          error.message.includes(`did you mean "${meant}"?`),
      )
    })
})
