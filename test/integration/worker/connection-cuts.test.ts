import assert from 'node:assert/strict';
import { findErrors, measureCuts } from '../../../scripts/reliability/cuts.js';

describe('three workers whose connections are closed again and again', () => {
  it('neither hang nor lose jobs, run none twice, and stop', async () => {
    const result = await measureCuts(10_000);
    assert.deepEqual(findErrors(result), []);
    assert.ok(result.cuts > 5);
  });
});
