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

  it('takes spellings that differ by needless coding for one resource, which one server owns', () => {
    const list = (namespace: string, uri: string) => defineResource({ namespace, uri })
    const items = createToolset([
      list('a', 'db://h/a%281%29'),
      list('a', 'db://h/b(1)'),
      list('b', 'db://h/b%281%29'),
      list('b', 'db://h/c//'),
    ])
    const owners = new ResourceOwners({ items: () => items }, () => ['a', 'b'])
    assert.equal(owners.idOf('db://h/a%281%29'), 'resource:a:db://h/a%281%29')
    assert.equal(owners.idOf('db://h/a%281)'), 'resource:a:db://h/a(1)')
    assert.equal(owners.idOf('db://h/c//'), 'resource:b:db://h/c//')
    for (const uri of ['db://h/b(1)', 'db://h/b%281%29', 'db://h/%62(1)', 'db://h/%63//', 'db://h/c%2F'])
      assert.equal(owners.idOf(uri), undefined, uri)
    assert.deepEqual(owners.contested, [
      { uri: 'db://h/b%281%29', servers: ['a', 'b'] },
      { uri: 'db://h/b(1)', servers: ['a', 'b'] },
    ])
  })
})
