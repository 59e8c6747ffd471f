"""Seeds of sampling for clients that have one."""

from __future__ import annotations

from case_study.runner import model_spec
from case_study.runner.request import sampled_by


def test_a_client_of_openais_api_is_given_the_seed_and_is_otherwise_the_same() -> None:
    client = model_spec("http://127.0.0.1:9/v1#tiny").open()
    seeded = sampled_by(client, 7)
    before, after = client.dump_component(), seeded.dump_component()
    assert after.config["seed"] == 7
    same = {name: value for name, value in after.config.items() if name != "seed"}
    assert same == before.config
    assert after.provider == before.provider
    assert seeded.model_info == client.model_info


def test_a_client_without_a_seed_stays_as_it_is() -> None:
    client = model_spec("scripted:noisy", 3).open()
    assert sampled_by(client, 7) is client
