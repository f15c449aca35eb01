import assert from 'node:assert/strict'
import { it } from 'node:test'
import { findTemplateProblem } from '../../packages/core/src/tools/uri-template.ts'
import { canonicalize, readJson } from '@toolgate/values/json'
import { expand } from '../../packages/gateway/src/mcp/completion/complete.ts'
import { checkScores, describeReferee, Score } from '../support/referees.ts'

describeReferee('jcs', (data) => {
  it('is judged by the canonical form that hashes and signatures are of', () => {
    const ours = new Score('Toolgate')
    for (const file of data.list('testdata/input')) {
      const text = canonicalize(readJson(data.read(`testdata/input/${file}`)))
      const bytes = data.read(`testdata/outhex/${file.replace('.json', '.txt')}`).replaceAll(/\s/g, '')
      const isSame = text === data.read(`testdata/output/${file}`) && Buffer.from(text).toString('hex') === bytes
      assert.ok(isSame, file)
      ours.count(file, true, isSame)
    }
    checkScores('jcs', [ours])
  })
})

const NOT_ASCII = /[^\p{ASCII}]/u

interface Section {
  readonly variables: Readonly<Record<string, unknown>>
  readonly testcases: readonly (readonly [template: string, expected: string | readonly string[] | false])[]
}

describeReferee('uritemplate-test', (data) => {
  it('is judged by the expansion of completed URIs, which has levels 1 and 2 and texts', () => {
    const ours = new Score('Toolgate')
    for (const file of ['spec-examples.json', 'extended-tests.json', 'negative-tests.json'])
      for (const { variables, testcases } of Object.values(data.json(file) as Readonly<Record<string, Section>>))
        for (const [template, expected] of testcases) {
          const given = Object.entries(variables).filter(([, value]) => typeof value === 'string')
          // A text without braces is a URI.
          const problem = /[{}]/.test(template) ? findTemplateProblem(`x:${template}`) : undefined
          const uri =
            problem === undefined ? expand(template, Object.fromEntries(given) as Record<string, string>) : undefined
          const isRight = uri !== undefined && expected !== false && [expected].flat().includes(uri)
          if (expected === false) ours.count(`${file} ${template}`, false, uri !== undefined)
          // A literal outside ASCII stays as its server lists it.
          else if (uri === undefined || NOT_ASCII.test(template)) ours.count(`${file} ${template}`, true, isRight)
          else {
            assert.ok(isRight, `${template}: ${uri}, not ${String(expected)}`)
            ours.count(`${file} ${template}`, true, true)
          }
        }
    for (const name of ours.accepted) console.log(`  accepted: ${name}`)
    checkScores('uritemplate-test', [ours])
  })
})
