import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createToolset, defineResource, defineTemplate } from '@toolgate/core/toolset'
import { ResourceOwners } from './resource-owners.ts'

describe('ResourceOwners', () => {
  it('finds the owners of many resources beside many templates at once', () => {
    const resources = Array.from({ length: 4000 }, (_, i) => defineResource({ namespace: 'a', uri: `file:///a/${i}` }))
    const templates = Array.from({ length: 500 }, (_, i) =>
      defineTemplate({ namespace: 'b', uriTemplate: `file:///{+x}/y${i}` }),
    )
    const items = createToolset([...resources, ...templates])
    const owners = new ResourceOwners({ items: () => items }, () => ['a', 'b'])
    const before = process.cpuUsage()
    assert.deepEqual(owners.contested, [])
    // CPU time, so that other processes do not count: about 80 ms; 2,000 ms if the spelling of each URI is checked for
    // each template.
    assert.ok(process.cpuUsage(before).user < 1_500_000)
    assert.equal(owners.idOf('file:///a/7'), 'resource:a:file:///a/7')
    assert.equal(owners.idOf('file:///b/y7'), 'resource:b:file:///b/y7')
    assert.equal(owners.idOf('file:///b/z'), undefined)
  })
})
