import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { FileResults } from '@toolgate/gateway'
import { toJunit, toTap } from './results.ts'

const FILES: readonly FileResults[] = [
  {
    file: 'a.test.yaml',
    tests: [
      { shows: 'a # skip', ok: true, missed: [] },
      {
        shows: 'b <&> "c"\nd',
        ok: false,
        missed: [
          {
            line: 3,
            column: 5,
            what: 'expect.call x:y',
            expected: 'allow',
            found: 'deny',
            because: ['policy_denied: "]]>"\u0007', 'two'],
          },
        ],
      },
    ],
  },
  { file: 'b.test.yaml', tests: [{ shows: 'e', ok: true, missed: [] }] },
]

describe('toTap', () => {
  it('numbers the tests of all files, and escapes what is a directive', () => {
    assert.equal(
      toTap(FILES),
      `TAP version 14
1..3
ok 1 - a.test.yaml: a \\# skip
not ok 2 - a.test.yaml: b <&> "c" d
  ---
  missed:
    - at: "a.test.yaml:3:5"
      message: "expect.call x:y: expected allow, found deny"
      because: ["policy_denied: \\"]]>\\"\\u0007","two"]
  ...
ok 3 - b.test.yaml: e
`,
    )
  })
})

describe('toJunit', () => {
  it('has a suite for each file, and no character that XML does not have', () => {
    assert.equal(
      toJunit(FILES),
      `<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="a.test.yaml" tests="2" failures="1">
    <testcase classname="a.test.yaml" name="a # skip"/>
    <testcase classname="a.test.yaml" name="b &lt;&amp;&gt; &quot;c&quot;&#10;d">
      <failure message="expect.call x:y: expected allow, found deny">a.test.yaml:3:5&#10;policy_denied: &quot;]]&gt;&quot;\u{fffd}&#10;two</failure>
    </testcase>
  </testsuite>
  <testsuite name="b.test.yaml" tests="1" failures="0">
    <testcase classname="b.test.yaml" name="e"/>
  </testsuite>
</testsuites>
`,
    )
  })
})
