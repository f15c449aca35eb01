import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { didYouMean, nearestOf } from './did-you-mean.ts'

describe('didYouMean', () => {
  it('names the known word that was meant', () => {
    assert.equal(nearestOf('comand', ['command', 'package']), 'command')
    assert.equal(nearestOf('sevrers', ['servers', 'callers']), 'servers')
    assert.equal(nearestOf('dependson', ['dependsOn']), 'dependsOn')
    assert.equal(nearestOf('unles', ['when', 'unless']), 'unless')
    assert.equal(nearestOf('policies', ['tools', 'policy']), 'policy')
    assert.equal(didYouMean('rolls', ['user', 'roles']), '; did you mean "roles"?')
  })

  it('says nothing when no known word is near', () => {
    assert.equal(didYouMean('frobnicate', ['listen', 'servers']), '')
    assert.equal(didYouMean('x', ['id']), '')
  })
})
