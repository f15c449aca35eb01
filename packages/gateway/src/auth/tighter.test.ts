import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, it } from 'node:test'
import type { Policy } from '@toolgate/core'
import type { CallerConfig } from '../config/config.ts'
import { type ComparedRules, findUnproven } from './tighter.ts'

function rules(more: object = {}): ComparedRules {
  return { policy: [], callers: [], limits: [], groups: [], servers: [], ...more }
}

function caller(key: string, user: string, more: Partial<CallerConfig> = {}): CallerConfig {
  return { keyHash: createHash('sha256').update(key).digest(), for: 'mcp', caller: { user }, ...more }
}

function overlays(...names: readonly string[]) {
  return new Map(names.map((name) => [name, { enabled: name === '*' }]))
}

const clause = { match: 'tag:x', when: "caller.user == 'vera'" }

describe('findUnproven', () => {
  const tighter: readonly (readonly [what: string, before: object, after: object])[] = [
    ['the same', { policy: [{ deny: [clause] }] }, { policy: [{ deny: [{ ...clause }] }] }],
    [
      'a further policy, before the others',
      { policy: [{ allow: ['*'] }] },
      { policy: [{ deny: ['a'] }, { allow: ['*'] }] },
    ],
    [
      'a further denial, question and tag',
      { policy: [{ deny: ['a'] }] },
      { policy: [{ deny: ['b', 'a'], ask: ['c'], requireTags: ['t'] }] },
    ],
    ['fewer that are allowed', { policy: [{ allow: ['a', 'b'] }] }, { policy: [{ allow: ['b'] }] }],
    ['nothing that is allowed', { policy: [{ allow: ['a'] }] }, { policy: [{ allow: [] }] }],
    ['an allowlist where none was', { policy: [{ deny: ['a'] }] }, { policy: [{ allow: ['b'], deny: ['a'] }] }],
    ['two policies as one', { policy: [{ deny: ['a'] }, { deny: ['b'] }] }, { policy: [{ deny: ['a', 'b'] }] }],
    ['an allowlist of tools where no policy was', {}, { policy: [{ allow: ['a'] }] }],
    ['a further label', {}, { labels: { private: ['a'] } }],
    ['less trust', { labels: { trusted: ['a', 'b'] } }, { labels: { trusted: ['b'], private: ['a'] } }],
    ['another name', { policy: [{ name: 'x', deny: ['a'] }] }, { policy: [{ name: 'y', deny: ['a'] }] }],
    [
      'a further shadow',
      { policy: [{ deny: ['a'] }] },
      { policy: [{ deny: ['a', { match: 'b', mode: 'shadow' }] }, { ask: ['c'], mode: 'shadow' }] },
    ],
    ['fewer keys', { callers: [caller('1', 'vera'), caller('2', 'udo')] }, { callers: [caller('2', 'udo')] }],
    ['no grants', { grants: { maxMs: 5, maxUses: 5 } }, {}],
    [
      'shorter grants by others',
      { grants: { maxMs: 5, maxUses: 5 } },
      { grants: { maxMs: 4, maxUses: 5, by: 'other' } },
    ],
    ['a lower limit, and a further one', { limits: ['*:10/60'] }, { limits: ['a:1/1', '*:9/60'] }],
    [
      'a lower limit as an object',
      { limits: [{ match: '*', max: 2, windowMs: 1, per: ['user'] }] },
      { limits: [{ per: ['user'], windowMs: 1, match: '*', max: 1 }] },
    ],
    ['fewer apps', { apps: [{ name: 'x' }, { name: 'y' }] }, { apps: [{ name: 'y' }] }],
  ]
  for (const [what, before, after] of tighter)
    it(`proves ${what}`, () => assert.deepEqual(findUnproven(rules(before), rules(after)), []))

  const unproven: readonly (readonly [what: string, before: object, after: object, section: string])[] = [
    ['a policy less', { policy: [{ deny: ['a'] }, { deny: ['b'] }] }, { policy: [{ deny: ['a'] }] }, 'policy'],
    ['a denial less', { policy: [{ deny: ['a', 'b'] }] }, { policy: [{ deny: ['a'] }] }, 'policy'],
    ['a question less', { policy: [{ ask: ['a'] }] }, { policy: [{}] }, 'policy'],
    [
      'a denial in the place of a question about it',
      { policy: [{ ask: ['a'] }] },
      { policy: [{ deny: ['a'] }] },
      'policy',
    ],
    [
      'another condition',
      { policy: [{ deny: [clause] }] },
      { policy: [{ deny: [{ ...clause, when: 'true' }] }] },
      'policy',
    ],
    [
      'a clause that becomes a shadow',
      { policy: [{ deny: [clause] }] },
      { policy: [{ deny: [{ ...clause, mode: 'shadow' }] }] },
      'policy',
    ],
    [
      'a policy that becomes a shadow',
      { policy: [{ deny: ['a'] }] },
      { policy: [{ deny: ['a'], mode: 'shadow' }] },
      'policy',
    ],
    ['no allowlist', { policy: [{ allow: [] }] }, { policy: [{}] }, 'policy'],
    ['a further one that is allowed', { policy: [{ allow: ['a'] }] }, { policy: [{ allow: ['a', 'b'] }] }, 'policy'],
    [
      'an allowlist with resources, which none names nowhere else',
      { policy: [{ deny: ['a'] }] },
      { policy: [{ deny: ['a'], allow: ['*', 'resource:files:*'] }] },
      'policy',
    ],
    [
      'an allowlist with prompts where no policy was',
      {},
      { policy: [{ allow: ['*', { match: ['b', 'prompt:git:*'], unless: 'false' }] }] },
      'policy',
    ],
    ['a tag less', { policy: [{ requireTags: ['t'] }] }, { policy: [{ deny: ['a'] }] }, 'policy'],
    [
      'denials that are spread over two policies',
      { policy: [{ deny: ['a'], allow: ['x'] }] },
      { policy: [{ deny: ['a'] }, { allow: ['x'] }] },
      'policy',
    ],
    ['a key', {}, { callers: [caller('1', 'vera')] }, 'callers'],
    ['another key', { callers: [caller('1', 'vera')] }, { callers: [caller('2', 'vera')] }, 'callers'],
    [
      'fewer roles, which a condition may want',
      { callers: [caller('1', 'v', { caller: { user: 'v', roles: ['a'] } })] },
      { callers: [caller('1', 'v')] },
      'callers',
    ],
    [
      'one of two keys of a user, which may bring a made one back',
      { callers: [caller('1', 'v', { id: 'a' }), caller('2', 'v', { id: 'b' })] },
      { callers: [caller('1', 'v', { id: 'a' })] },
      'callers',
    ],
    ['a limit less', { limits: ['*:1/60', 'a:1/1'] }, { limits: ['*:1/60'] }, 'limits'],
    ['grants where none were', {}, { grants: { maxMs: 5, maxUses: 5 } }, 'grants'],
    ['longer grants', { grants: { maxMs: 5, maxUses: 5 } }, { grants: { maxMs: 6, maxUses: 5 } }, 'grants'],
    ['more uses of a grant', { grants: { maxMs: 5, maxUses: 5 } }, { grants: { maxMs: 5, maxUses: 6 } }, 'grants'],
    [
      'grants by anybody',
      { grants: { maxMs: 5, maxUses: 5, by: 'other' } },
      { grants: { maxMs: 5, maxUses: 5 } },
      'grants',
    ],
    ['a higher limit', { limits: ['*:1/60'] }, { limits: ['*:2/60'] }, 'limits'],
    ['a shorter window', { limits: ['*:1/60'] }, { limits: ['*:1/6'] }, 'limits'],
    [
      'a limit that counts apart',
      { limits: [{ match: '*', max: 1, windowMs: 1 }] },
      { limits: [{ match: '*', max: 1, windowMs: 1, per: ['user'] }] },
      'limits',
    ],
    ['a server', {}, { servers: [{ name: 'a' }] }, 'servers'],
    ['a server less', { servers: [{ name: 'a' }] }, {}, 'servers'],
    ['another server', { servers: [{ name: 'a', args: [] }] }, { servers: [{ name: 'a', args: ['x'] }] }, 'servers'],
    [
      'overlays in another order',
      { servers: [{ name: 'a', tools: overlays('x', '*') }] },
      { servers: [{ name: 'a', tools: overlays('*', 'x') }] },
      'servers',
    ],
    ['another group', { groups: [{ name: 'a' }] }, { groups: [] }, 'groups'],
    ['another name of a tool', {}, { aliases: { a: 'b' } }, 'aliases'],
    ['an app', {}, { apps: [{ name: 'a' }] }, 'apps'],
    ['more trust', { labels: { trusted: ['a'] } }, { labels: { trusted: ['a', 'b'] } }, 'labels'],
    ['trust where none was', {}, { labels: { trusted: ['a'] } }, 'labels'],
    ['a label less', { labels: { private: ['a'] } }, {}, 'labels'],
    ['a tool less in a label', { labels: { private: ['a', 'b'] } }, { labels: { private: ['a'] } }, 'labels'],
    [
      'a tool with other addressees',
      { servers: [{ name: 'a', tools: new Map([['x', { addressees: ['to', 'cc'] }]]) }] },
      { servers: [{ name: 'a', tools: new Map([['x', { addressees: ['to'] }]]) }] },
      'servers',
    ],
  ]
  for (const [what, before, after, section] of unproven)
    it(`does not prove ${what}`, () => assert.deepEqual(findUnproven(rules(before), rules(after)), [section]))

  it('takes no clause for another one that reads the same', () => {
    const policy = (deny: Policy['deny']) => rules({ policy: [{ deny }] })
    assert.deepEqual(findUnproven(policy(['a']), policy([{ match: 'a', message: 'no' }])), ['policy'])
  })
})
