//! The forms in which published agents pass a person's words to the model in a tool's result,
//! report failed edits, and send messages of their own in the user's role.

use plimsoll_context::{CallId, Message};
use serde_json::json;

use super::calls;

/// A second question that some forms add.
pub(super) const SECOND_QUESTION: &str = "Shall I go on at once?";
/// A plan without its last line.
pub(super) const PLAN: &str =
    "# Plan\n\n1. Read the tide tables\n2. Move the parser\n3. Add a test\n";

/// Creates a question by a tool, and the person's answer in its result.
pub(super) fn answered(id: CallId, form: usize, question: &str, answer: &str) -> Vec<Message> {
    let options =
        json!([{"label": "As proposed", "description": ""}, {"label": "Other", "description": ""}]);
    let (name, arguments, result) = match form % 8 {
        0 => (
            "AskUserQuestion",
            json!({"questions": [{"question": question, "header": "Choice", "options": options, "multiSelect": false}]}),
            format!(
                "User has answered your questions: \"{question}\"=\"{answer}\". You can now continue with the user's answers in mind."
            ),
        ),
        1 => (
            "request_user_input",
            json!({"questions": [{"id": "choice", "header": "Choice", "question": question, "options": options}]}),
            json!({"answers": {"choice": {"answers": [answer]}}}).to_string(),
        ),
        2 => (
            "question",
            json!({"questions": [{"question": question, "header": "Choice", "options": options}]}),
            format!(
                "User has answered your questions: \"{question}\"=\"{answer}\". You can now continue with the user's answers in mind."
            ),
        ),
        3 => (
            "ask_followup_question",
            json!({"question": question, "follow_up": []}),
            format!("<answer>\n{answer}\n</answer>"),
        ),
        4 => (
            "ask_user",
            json!({"question": question}),
            format!("User wrote: {answer}"),
        ),
        5 => (
            "ask_user",
            json!({"questions": [{"question": question, "type": "text"}]}),
            json!({"answers": {"0": answer}}).to_string(),
        ),
        6 => (
            "AskUserQuestion",
            json!({"questions": [{"question": question, "options": options}, {"question": SECOND_QUESTION, "options": options}]}),
            format!(
                "User has answered your questions: \"{question}\"=\"Other\" user notes: {answer}, \"{SECOND_QUESTION}\"=\"Yes\". You can now continue with the user's answers in mind."
            ),
        ),
        _ => (
            "ask_human",
            json!({"question": question}),
            answer.to_owned(),
        ),
    };
    vec![calls(&id, name, &arguments), Message::result(id, result)]
}

/// Creates an edit that a person refused, with the reason in its result.
pub(super) fn refused(id: CallId, form: usize, path: &str, reason: &str) -> Vec<Message> {
    let arguments =
        json!({"file_path": path, "old_string": "let depth = 4;", "new_string": "let depth = 9;"});
    let (name, result) = match form % 6 {
        0 => (
            "Edit",
            format!(
                "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). To tell you how to proceed, the user said:\n{reason}"
            ),
        ),
        1 => (
            "edit",
            format!(
                "The user rejected permission to use this specific tool call with the following feedback: {reason}"
            ),
        ),
        2 => (
            "apply_diff",
            format!(
                "The user denied this operation and provided the following feedback:\n<feedback>\n{reason}\n</feedback>"
            ),
        ),
        3 => (
            "edit",
            format!("The user rejected this tool call. User feedback: {reason}"),
        ),
        4 => (
            "Edit",
            format!(
                "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). To tell you how to proceed, the user said:\n{reason}\n\nNote: The user's next message may contain a correction or preference. Pay close attention — if they explain what went wrong or how they'd prefer you to work, consider saving that to memory for future sessions."
            ),
        ),
        _ => (
            "str_replace_editor",
            format!("Action rejected by the user. Reason: {reason}"),
        ),
    };
    vec![
        calls(&id, name, &arguments),
        Message::error_result(id, result),
    ]
}

/// Creates a plan that a person edited before approving it.
pub(super) fn plan_edited(id: CallId, line: &str) -> Vec<Message> {
    let plan = PLAN;
    let arguments = json!({"plan": format!("{plan}4. Switch over on Friday\n")});
    let result = format!(
        "User has approved your plan. You can now start coding. Start with updating your todo list if applicable\n\nYour plan has been saved to: /home/ann/.claude/plans/tide.md\nYou can refer back to it if needed during implementation.\n\n## Approved Plan (edited by user):\n{plan}{line}\n"
    );
    vec![
        calls(&id, "ExitPlanMode", &arguments),
        Message::result(id, result),
    ]
}

/// Creates a failed edit, as reported by different agents.
pub(super) fn failed_edit(id: CallId, form: usize, path: &str) -> Vec<Message> {
    let edit =
        json!({"file_path": path, "old_string": "let berth = 1;", "new_string": "let berth = 2;"});
    let (name, arguments, result, flagged) = match form % 9 {
        0 => (
            "Edit",
            edit,
            "<tool_use_error>String to replace not found in file.\nString: let berth = 1;</tool_use_error>".to_owned(),
            true,
        ),
        1 => (
            "edit",
            json!({"path": path, "oldText": "let berth = 1;", "newText": "let berth = 2;"}),
            format!("Could not find the exact text in {path}. The old text must match exactly including all whitespace and newlines."),
            true,
        ),
        2 => (
            "str_replace_editor",
            json!({"command": "str_replace", "path": path, "old_str": "let berth = 1;", "new_str": "let berth = 2;"}),
            format!("ERROR:\nNo replacement was performed, old_str `let berth = 1;` did not appear verbatim in {path}."),
            false,
        ),
        3 => (
            "edit",
            json!({"path": path, "start_line": 4, "end_line": 4, "replacement_text": "let berth = 2"}),
            "Your proposed edit has introduced new syntax error(s). Please read this error message carefully and then retry editing the file.\n\nERRORS:\n- E999 SyntaxError: invalid syntax".to_owned(),
            false,
        ),
        4 => (
            "Write",
            json!({"file_path": path, "content": "fn berth() {}\n"}),
            "<tool_use_error>File has not been read yet. Read it first before writing to it.</tool_use_error>".to_owned(),
            true,
        ),
        5 => (
            "apply_patch",
            json!({"input": format!("*** Begin Patch\n*** Update File: {path}\n@@\n-let berth = 1;\n+let berth = 2;\n*** End Patch")}),
            format!("apply_patch verification failed: Failed to find expected lines in {path}:\nlet berth = 1;"),
            false,
        ),
        6 => (
            "write",
            json!({"path": path, "content": "fn berth() {}\n"}),
            "Command aborted".to_owned(),
            true,
        ),
        7 => (
            "MultiEdit",
            json!({"file_path": path, "edits": [{"old_string": "let berth = 1;", "new_string": "let berth = 2;"}]}),
            "[Request interrupted by user for tool use]".to_owned(),
            true,
        ),
        _ => (
            "edit",
            json!({"filePath": path, "oldString": "let berth = 1;", "newString": "let berth = 2;"}),
            format!("Error: EACCES: permission denied, open '{path}'"),
            false,
        ),
    };
    let result = if flagged {
        Message::error_result(id.clone(), result)
    } else {
        Message::result(id.clone(), result)
    };
    vec![calls(&id, name, &arguments), result]
}

/// Creates messages of a program in the user's role, with a sentence that reads like a user's rule.
pub(super) fn host(form: usize, rule: &str) -> Vec<Message> {
    let texts: Vec<String> = match form % 14 {
        0 => vec![format!(
            "Base directory for this skill: /home/ann/.claude/skills/ship\n\n# Ship\n\nHow to ship a change.\n\n- {rule}\n- Ask for the ticket number."
        )],
        1 => vec![
            "<command-message>review is running…</command-message>\n<command-name>/review</command-name>".to_owned(),
            format!("You are reviewing a pull request.\n\n1. Read the diff.\n2. {rule}\n3. Report findings by severity."),
        ],
        2 => vec![
            "<local-command-caveat>Caveat: The messages below were generated by the user while running local commands. DO NOT respond to these messages or otherwise consider them in your response unless the user explicitly asks you to.</local-command-caveat>".to_owned(),
            "<command-name>/status</command-name>\n            <command-message>status</command-message>\n            <command-args></command-args>".to_owned(),
            format!("<local-command-stdout>Account: ann\nNotice: {rule}</local-command-stdout>"),
        ],
        3 => vec![
            "<bash-input>git status</bash-input>".to_owned(),
            format!("<bash-stdout>On branch main\nhint: {rule}</bash-stdout><bash-stderr></bash-stderr>"),
        ],
        4 => vec![format!(
            "<system-reminder>\nThe TodoWrite tool hasn't been used recently. {rule}\n</system-reminder>"
        )],
        5 => vec![format!(
            "<user-prompt-submit-hook>{rule} Branch: main.</user-prompt-submit-hook>"
        )],
        6 => vec![format!("Stop hook feedback:\n- [lint.sh]: {rule}")],
        7 => vec![format!(
            "This session is being continued from a previous conversation that ran out of context. The summary below covers the earlier portion of the conversation.\n\nSummary:\n1. Primary request: tidy the harbour crate. {rule}\n2. Pending tasks: none."
        )],
        8 => vec![format!(
            "<environment_context>\n  <cwd>/home/ann/quay</cwd>\n  <approval_policy>on-request</approval_policy>\n  <note>{rule}</note>\n</environment_context>"
        )],
        9 => vec![format!(
            "# AGENTS.md instructions for /home/ann/quay\n\n<INSTRUCTIONS>\n{rule}\n</INSTRUCTIONS>"
        )],
        10 => vec![format!(
            "<EXTRA_INFO>\nThe following information has been included based on a keyword match for \"git\".\nIt may or may not be relevant to the user's request.\n\n{rule}\n</EXTRA_INFO>"
        )],
        11 => vec![format!(
            "Called the Read tool with the following input: {{\"filePath\":\"/home/ann/quay/STYLE.md\"}}\n<file>\n00001| {rule}\n</file>"
        )],
        12 => vec![format!("Ran `cat NOTES`\n```\n{rule}\n```")],
        _ => vec![format!(
            "Please continue working on the task on whatever approach you think is suitable.\nIf you think you have solved the task, please finish the interaction.\nIMPORTANT: {rule}"
        )],
    };
    texts.into_iter().map(Message::user).collect()
}
