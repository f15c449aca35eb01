import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ownCommand } from './gateway-entry.ts'

describe('ownCommand', () => {
  it('names the program of Node and the command by their paths', () => {
    assert.deepEqual(ownCommand('/opt/toolgate/node_modules/toolgate/bin/toolgate.js'), [
      process.execPath,
      '/opt/toolgate/node_modules/toolgate/bin/toolgate.js',
    ])
  })

  it('refuses the cache of npx, and never writes a name that npx would fetch', () => {
    assert.throws(() => ownCommand('/home/vera/.npm/_npx/1a2b/node_modules/toolgate/bin/toolgate.js'), {
      name: 'CliError',
      exit: 'usage',
      hint: /npm run pack/,
    })
  })
})
