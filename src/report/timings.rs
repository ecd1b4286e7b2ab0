//! A build's timeline as a page for people and as a trace for tools.
//!
//! The page needs nothing but a browser. The trace is Chrome's event format, which <https://ui.perfetto.dev> and
//! `chrome://tracing` read. Pure.

use serde_json::{Value, json};

use super::timeline::{Call, Timeline};

const PAGE: &str = include_str!("timings.html");

/// The page.
pub fn page(title: &str, timeline: &Timeline) -> String {
    let lanes = lanes(&timeline.calls);
    let critical = critical(&timeline.calls);
    let call = |(index, call): (usize, &Call)| {
        let mut value = serde_json::to_value(call).unwrap_or_default();
        value["lane"] = lanes[index].into();
        value["critical"] = critical.contains(&index).into();
        value
    };
    let calls: Vec<Value> = timeline.calls.iter().enumerate().map(call).collect();
    let data = json!({ "title": title, "cores": timeline.cores, "calls": calls, "samples": timeline.samples });
    // A `</script>` inside a string would end the script.
    PAGE.replace("@TITLE@", &escaped(title)).replace("@DATA@", &data.to_string().replace("</", "<\\/"))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The trace.
pub fn trace(timeline: &Timeline) -> String {
    let lanes = lanes(&timeline.calls);
    let call = |(call, lane): (&Call, &usize)| {
        json!({
            "name": call.source, "cat": if call.link { "link" } else { "compile" }, "ph": "X", "pid": 1, "tid": lane + 1,
            "ts": call.began * 1000, "dur": call.ended.saturating_sub(call.began) * 1000,
            "args": {
                "archs": call.archs, "tool": call.tool, "peak": call.peak, "user": call.user, "system": call.system,
                "waited": call.began.saturating_sub(call.asked), "status": call.status, "attempts": call.attempts,
            },
        })
    };
    let sample = |sample: &super::timeline::Sample| {
        let memory = json!({ "used": sample.used, "free": sample.free });
        json!({ "name": "memory", "ph": "C", "pid": 1, "ts": sample.at * 1000, "args": memory })
    };
    let events: Vec<Value> =
        timeline.calls.iter().zip(&lanes).map(call).chain(timeline.samples.iter().map(sample)).collect();
    json!({ "traceEvents": events, "displayTimeUnit": "ms" }).to_string()
}

/// A lane for each call, so that no two in one lane overlap; as few as that takes.
fn lanes(calls: &[Call]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..calls.len()).collect();
    order.sort_by_key(|&index| calls[index].began);
    let mut free: Vec<u64> = Vec::new();
    let mut lanes = vec![0; calls.len()];
    for index in order {
        let lane = free.iter().position(|&end| end <= calls[index].began).unwrap_or_else(|| {
            free.push(0);
            free.len() - 1
        });
        free[lane] = calls[index].ended;
        lanes[index] = lane;
    }
    lanes
}

/// The chain that made the build as long as it was: from the last call back, each time to the one whose end came last
/// before the other could begin.
fn critical(calls: &[Call]) -> Vec<usize> {
    let mut chain: Vec<usize> = Vec::new();
    let mut next = (0..calls.len()).max_by_key(|&index| calls[index].ended);
    while let Some(index) = next {
        chain.push(index);
        let began = calls[index].began;
        let before = (0..calls.len()).filter(|&other| calls[other].ended <= began && !chain.contains(&other));
        next = before.max_by_key(|&other| calls[other].ended);
    }
    chain
}

#[cfg(test)]
mod tests {
    use super::super::timeline::Sample;
    use super::*;

    fn call(source: &str, began: u64, ended: u64) -> Call {
        Call { source: source.into(), began, ended, ..Call::default() }
    }

    fn build() -> Timeline {
        let calls = vec![call("b.cu", 0, 5), call("a.cu", 0, 10), call("c.cu", 6, 12), call("</script>.so", 12, 20)];
        Timeline { calls, samples: vec![Sample { at: 3, used: 7, ..Sample::default() }], cores: 2 }
    }

    #[test]
    fn the_critical_path_leads_back_from_the_end_and_lanes_do_not_overlap() {
        let build = build();
        assert_eq!(lanes(&build.calls), [0, 1, 0, 0]);
        assert_eq!(critical(&build.calls), [3, 2, 0]);
        assert_eq!(critical(&[]), [0; 0]);
    }

    #[test]
    fn the_page_stands_alone_and_no_name_breaks_it() {
        let page = page("<x>", &build());
        assert!(page.contains("<title>&lt;x&gt;"));
        assert_eq!(page.matches("</script>").count(), 1);
        assert!(!page.contains("@DATA@") && !page.contains("src=") && !page.contains("href="));
    }

    #[test]
    fn the_trace_holds_every_call_and_sample() {
        let trace: Value = serde_json::from_str(&trace(&build())).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        assert_eq!(events.len(), 5);
        assert_eq!((&events[1]["ts"], &events[1]["dur"]), (&0.into(), &10_000.into()));
    }
}
