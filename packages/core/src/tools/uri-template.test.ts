import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findTemplateProblem, parseUriTemplate } from './uri-template.ts'

describe('parseUriTemplate', () => {
  const table: readonly (readonly [template: string, may: readonly string[], cannot: readonly string[]])[] = [
    ['db://users/{id}', ['db://users/5', 'db://users/'], ['db://users/5/x', 'db://other/5', 'db://users']],
    ['db://{table}/{id}.json', ['db://a/b.json'], ['db://a/b.xml', 'db://a.json']],
    ['file:///{+path}', ['file:///a', 'file:///a/b'], ['db://a']],
    ['file:///{+path}/end', ['file:///a/b/end'], ['file:///a/b/END', 'file:///end']],
    ['db://a/{id}/{+rest}', ['db://a/b/c/d', 'db://a/b/c'], ['db://b/b/c']],
    // Any other expression, and any other spelling, may be read by the server as it likes.
    ['db://a{?q}', ['db://b'], []],
    ['db://a/{id*}', ['db://b'], []],
    ['db://a/{id:3}', ['db://b'], []],
    ['db://a/{x,y}', ['db://b'], []],
    ['DB://a/{x}', ['db://b'], []],
    // The authority of a scheme without hosts is a name.
    ['jira://{key}', ['jira://PROJ-123', 'jira://proj-123'], ['jira://PROJ-123/a']],
    ['jira://Proj/{n}', ['jira://Proj/5'], ['jira://proj/5']],
    // Some servers match the path alone.
    ['db://a/{id}/view', ['db://a/5/view', 'db://a/5/view?x=1'], ['db://a/5/edit?x=view']],
    ['db://{+path}/end', ['db://a/end?b=c'], ['db://a/x?b=c']],
    ['db://ä/{x}', ['db://b'], []],
    ['db://a/../{x}', ['db://b'], []],
  ]
  for (const [text, may, cannot] of table)
    it(`${text} may match ${may.join(', ')}${cannot.length > 0 ? ` and not ${cannot.join(', ')}` : ''}`, () => {
      const template = parseUriTemplate(text)
      for (const uri of may) assert.equal(template.mayMatch(uri), true, uri)
      for (const uri of cannot) assert.equal(template.mayMatch(uri), false, uri)
    })

  it('may match every URI whose spelling is not normal', () => {
    assert.equal(parseUriTemplate('db://users/{id}').mayMatch('DB://other/5'), true)
  })

  it('answers for hostile templates and URIs in time linear in both', () => {
    const hostile = [parseUriTemplate(`db://${'{a}x'.repeat(400)}y`), parseUriTemplate(`db://${'{+a}x'.repeat(400)}y`)]
    const uri = `db://${'x'.repeat(2000)}`
    const before = process.cpuUsage()
    for (let i = 0; i < 1000; i++) for (const { mayMatch } of hostile) assert.equal(mayMatch(uri), false)
    // CPU time, so that other processes do not count: about 25 ms here.
    assert.ok(process.cpuUsage(before).user < 2_000_000)
  })
})

describe('findTemplateProblem', () => {
  for (const [text, problem] of [
    ['db://a', /has no expression/],
    ['db://{}', /braces that do not match/],
    ['db://{a', /has no expression|braces/],
    ['db://{a}}', /braces that do not match/],
    ['db://{a{b}}', /braces that do not match/],
    ['{a}', /must begin with a scheme/],
    ['db://{a} b', /must not hold spaces/],
    [7, /must be a string/],
  ] as const)
    it(`refuses ${text}`, () => assert.match(findTemplateProblem(text) ?? '', problem))

  it('takes a template', () => assert.equal(findTemplateProblem('db://{table}/{+id}{?q}'), undefined))
})
