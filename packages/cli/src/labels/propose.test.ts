import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parse } from 'yaml'
import { type LabelProposal, type ProposedTool, proposeLabels } from './propose.ts'
import { toYaml } from './to-yaml.ts'

type Fields = Readonly<Record<string, unknown>>
const text = { type: 'string' }

function propose(name: string, fields: Fields = {}, more: Partial<ProposedTool> = {}): LabelProposal {
  return proposeLabels({
    server: 'app',
    name,
    description: '',
    inputSchema: { type: 'object', properties: fields },
    ...more,
  })
}

function check(rows: readonly (readonly [name: string, fields: Fields, effects: string, addressees: string])[]): void {
  for (const [name, fields, effects, addressees] of rows) {
    const proposal = propose(name, fields)
    assert.deepEqual([proposal.effects?.join(' '), proposal.addressees.join(' ')], [effects, addressees], name)
  }
}

describe('proposeLabels', () => {
  it('takes a tool that changes something and has an addressee for one that sends', () => {
    check([
      ['send_sms', { phone_number: text, body: text }, 'egress', 'phone_number'],
      ['createIssue', { title: text, assignees: { type: 'array', items: text } }, 'egress', 'assignees'],
      ['add_reviewer', { pr: { type: 'integer' }, reviewers: { type: 'array' } }, 'egress', 'reviewers'],
      ['wire-money', { payee: text, amount: { type: 'number' } }, 'egress', 'payee'],
      ['set_forwarding', { rule: { type: 'object', properties: { to: text } } }, 'egress', 'rule.to'],
      ['add_hook', { callback: { type: 'string', format: 'uri' } }, 'egress', 'callback'],
      ['save_draft', { x: { type: 'string', description: 'The e-mail address to write to' } }, 'egress', 'x'],
      ['broadcast', { text }, 'egress', ''],
    ])
  })

  it('takes a tool that reads from a place of the caller for one that sends', () => {
    check([
      ['fetch_page', { url: text }, 'egress', 'url'],
      ['list_mails', { sender: text, query: text }, 'reads', ''],
      ['search_people', { email: text }, 'reads', ''],
    ])
  })

  it('names what destroys, commits, and changes who somebody is', () => {
    check([
      ['delete_branch', { name: text }, 'destructive', ''],
      ['remove_member', { user: text }, 'egress destructive', 'user'],
      ['bookFlight', { flight: text }, 'commits', ''],
      ['change_password', { password: text }, 'identity', ''],
      ['update_row', { id: text, password: text }, 'identity', ''],
      ['rename_folder', { id: text, title: text }, 'writes', ''],
    ])
  })

  it('takes the stricter of two verbs, and addresses for texts only', () => {
    check([
      ['get_or_create_label', { title: text }, 'writes', ''],
      ['find_and_delete', { query: text }, 'destructive', ''],
      [
        'set_account',
        { account: { type: 'number' }, recipient: { anyOf: [{ type: 'null' }, text] } },
        'egress',
        'recipient',
      ],
      [
        'create_note',
        { subject: { type: 'string', description: 'The subject of the email address book' } },
        'writes',
        '',
      ],
    ])
  })

  it('reads the description, then the hints, where the name says nothing', () => {
    assert.deepEqual(propose('crm', {}, { description: 'Deletes a lead.' }).effects, ['destructive'])
    assert.deepEqual(propose('crm', {}, { annotations: { readOnlyHint: true } }).effects, ['reads'])
    assert.deepEqual(propose('crm', {}, { annotations: { destructiveHint: true } }).effects, ['destructive'])
    assert.equal(propose('crm').effects, undefined)
    assert.deepEqual(propose('delete_lead', {}, { annotations: { readOnlyHint: true } }).effects, ['destructive'])
  })

  it('says of what reads own words only that a person may trust it', () => {
    const trusted = (name: string) => propose(name).mayBeTrusted
    assert.deepEqual(['search_contacts', 'get_current_time', 'read_mails', 'add_contacts'].map(trusted), [
      true,
      true,
      false,
      false,
    ])
  })

  it('knows what is labelled', () => {
    assert.equal(propose('send', {}, { tags: ['egress'] }).isLabelled, true)
    assert.equal(propose('send', {}, { tags: ['other'] }).isLabelled, false)
    assert.equal(propose('send', {}, { addressees: ['to'] }).isLabelled, true)
  })

  it('is not stopped by an odd schema', () => {
    for (const inputSchema of [
      undefined,
      null,
      [],
      true,
      { properties: 5 },
      { properties: { to: null, a: true, url: { type: 5 } } },
    ])
      assert.ok(propose('send', {}, { inputSchema }).effects?.includes('egress'))
  })
})

describe('toYaml', () => {
  it('is a part of a configuration, with unclear tools as comments', () => {
    const yaml = toYaml([
      propose('send_sms', { to: text }),
      propose('get_time'),
      propose('crm'),
      propose('list_mails'),
      propose('__proto__', {}, { description: 'Deletes all.' }),
    ])
    assert.deepEqual(parse(yaml), {
      labels: { trusted: ['app:get_time'] },
      servers: {
        app: {
          tools: { send_sms: { tags: ['egress'], addressees: ['to'] }, ['__proto__']: { tags: ['destructive'] } },
        },
      },
    })
    assert.match(yaml, /by hand:\n# +app:crm\n/)
  })

  it('keeps a name with a line feed in its comment, and sends no terminal a control character', () => {
    const yaml = toYaml([propose('crm\ntrusted: ["*"]\u001b[2J')])
    assert.deepEqual(parse(yaml), { labels: { trusted: [] }, servers: {} })
    assert.doesNotMatch(yaml, /\u001b/)
  })
})
